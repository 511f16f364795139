"""Writes a family to a repository: blobs, the bundle, the index last, so a killed writer leaves only unused files."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from jetsel.addons.fleet.documents import (
    INDEX,
    MAX_FILE_BYTES,
    PLANS,
    ROLLOUT,
    Bundle,
    BundledModel,
    Entry,
    File,
    Index,
    Plan,
    Rollout,
    plan_path,
)
from jetsel.addons.fleet.reading import check_blob, read_bundle, read_index, read_plan
from jetsel.addons.fleet.signing import MAX_DOCUMENT_BYTES, public_key, sign, unwrap
from jetsel.addons.fleet.storage import Storage, Stored
from jetsel.artefact import installed
from jetsel.artefact.calibration import ANSWERS
from jetsel.artefact.coding import ARRAYS, MANIFEST
from jetsel.base.errors import RepositoryError
from jetsel.base.files import TEMPORARY
from jetsel.zoo import Family
from jetsel.zoo.store import verify


def files_of(family: Family, calibrations: Path) -> tuple[dict[str, bytes], tuple[BundledModel, ...]]:
    """Return each file's content by its path in a device's folder, and the models with their files.

    `scan` reads that folder as this family. calibrations: the folder of the owner's calibrations; if none is in use,
    the one that came with the models is taken. Raises ManifestError, CalibrationError or RepositoryError for what a
    device would refuse.
    """
    files: dict[str, bytes] = {}
    models = []
    for model in family.models:
        model_files = {
            model.manifest_path.name: model.manifest_path.read_bytes(),
            model.manifest.file: verify(model),
            model.manifest.labels: (model.directory / model.manifest.labels).read_bytes(),
            **model.others(),
        }
        models.append(BundledModel(name=model.manifest.name, files=tuple(model_files)))
        for name, content in model_files.items():
            if files.setdefault(name, content) != content:
                raise RepositoryError(
                    f"family {family.name}: two of its folders have a file {name}, and they differ: remove one of the "
                    "models, and add it again under another name"
                )
    shipped = installed.shipped(family.calibration_folder, family.labels.sha256)
    used = installed.current(calibrations, family.name) or shipped
    if used is not None:
        used.usable_calibration()
        names = [name for name in (MANIFEST, ARRAYS, ANSWERS) if (used.directory / name).is_file()]
        files |= {f"calibration/{name}": (used.directory / name).read_bytes() for name in names}
    return files, tuple(models)


def init(storage: Storage, keys: Sequence[str]) -> None:
    """Write an empty index, signed by these private keys; raises RepositoryError if there is a repository already."""
    if storage.size(INDEX) is not None:
        raise RepositoryError(f"{INDEX}: there is a repository already: publish into it, or name another place")
    storage.write(INDEX, sign(Index(serial=1), keys))


def publish(
    storage: Storage,
    family: str,
    models: Sequence[BundledModel],
    files: Mapping[str, bytes],
    keys: Sequence[str],
    trusted: Collection[str],
) -> Bundle | None:
    """Write a family's next version and return it; None if the same files with the same keys are published.

    trusted: public keys that may have signed the repository so far, besides those of `keys`. Only one process at a time
    may publish. Raises RepositoryError.
    """
    own_public = {public_key(key) for key in keys}
    trusted = own_public.union(trusted)
    index, _ = read_index(storage, trusted)
    before = {entry.family: read_bundle(storage, entry, trusted) for entry in index.bundles}
    published = before.get(family)
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    if published is not None and set(published[1]) == own_public:
        same = {file.name: file.sha256 for file in published[0].files} == hashes
        if same and all(_has_blob(storage, file) for file in published[0].files):
            return None
    stored = {file.sha256: file for bundle, _ in before.values() for file in bundle.files}
    bundle = Bundle(
        family=family,
        version=1 if published is None else published[0].version + 1,
        models=tuple(models),
        files=tuple(_write_blob(storage, name, files[name], hashes[name], stored) for name in sorted(files)),
    )
    document = sign(bundle, keys)
    if len(document) > MAX_DOCUMENT_BYTES:
        raise RepositoryError(f"family {family}: too many files for one bundle: publish fewer models")
    entry = Entry(family=family, version=bundle.version, sha256=hashlib.sha256(document).hexdigest())
    storage.write(entry.path, document)
    bundles = {old.family: old for old in index.bundles} | {family: entry}
    storage.write(INDEX, sign(Index(serial=index.serial + 1, bundles=tuple(bundles.values())), keys))
    return bundle


def write_plan(storage: Storage, plan: Plan, keys: Sequence[str]) -> None:
    """Write a device's plan, signed by these private keys; raises RepositoryError."""
    storage.write(plan_path(plan.device), sign(plan, keys))


def read_rollout(storage: Storage, trusted: Collection[str]) -> Rollout | None:
    """Return the last roll-out, None if there was none; raises RepositoryError if it cannot be trusted."""
    if storage.size(ROLLOUT) is None:
        return None
    with storage.open(ROLLOUT)[0] as stream:
        return unwrap(stream.read(MAX_FILE_BYTES), Rollout, trusted, ROLLOUT)[0]


def unused_objects(
    storage: Storage, trusted: Collection[str], min_age_s: float, now_s: float | None = None
) -> list[Stored]:
    """Return objects that no bundle of the index, of a plan or of the last roll-out needs, and temporary files.

    min_age_s: younger objects are not returned, because a publication under way may need them. now_s: seconds since
    1970; None: by the storage's clock. Raises RepositoryError.
    """
    stored, now_s = storage.stored(""), storage.now_s() if now_s is None else now_s
    index, _ = read_index(storage, trusted)  # after the list, so that it names everything that was listed
    plans = [read_plan(storage, Path(path).stem, trusted)[0] for path in storage.names(PLANS)]
    families = [one for plan in plans for one in plan.families]
    if (rollout := read_rollout(storage, trusted)) is not None:  # plans that it may revert to, and plans to come
        families += [one for rolled in rollout.devices for one in (*rolled.before, *rolled.plan.families)]
    entries = {*index.bundles, *(one.bundle for one in families)}
    used_paths = {entry.path for entry in entries}
    for entry in entries:
        used_paths |= {file.blob for file in read_bundle(storage, entry, trusted)[0].files}
    removable = [one for one in stored if one.name.startswith(("blobs/", "bundles/", TEMPORARY))]
    return [one for one in removable if one.name not in used_paths and now_s - one.modified_s >= min_age_s]


def _write_blob(storage: Storage, name: str, content: bytes, sha256: str, stored: Mapping[str, File]) -> File:
    """Write a file's blob unless it exists; return the bundle's entry for it. Raises RepositoryError."""
    if len(content) > MAX_FILE_BYTES:
        raise RepositoryError(f"{name}: larger than {MAX_FILE_BYTES} bytes: leave its model out")
    old = stored.get(sha256)
    if old is not None and _has_blob(storage, old):  # compressed earlier, maybe by another zlib
        return msgspec.structs.replace(old, name=name)
    packed = gzip.compress(content, mtime=0)
    file = File(name=name, sha256=sha256, bytes=len(content), compressed_bytes=len(packed))
    if not _has_blob(storage, file):
        storage.write(file.blob, packed)
    return file


def _has_blob(storage: Storage, file: File) -> bool:
    """Return whether the repository has this content, verified: a blob of the right size may be damaged."""
    if storage.size(file.blob) != file.compressed_bytes:
        return False
    try:
        check_blob(storage, file)
    except RepositoryError:
        return False
    return True
