"""Reads a repository: its documents, and a bundle's files, with resumed, limited and verified downloads."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import tempfile
import zlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from jetsel.addons.fleet.documents import INDEX, Bundle, Entry, File, Index, Plan, plan_path
from jetsel.addons.fleet.signing import MAX_DOCUMENT_BYTES, unwrap
from jetsel.addons.fleet.sources import RepositorySource
from jetsel.addons.http_client import CONNECTION_ERRORS
from jetsel.base.errors import RepositoryError
from jetsel.base.files import TEMPORARY, flush, repair_of, sha256_of

ATTEMPTS = 5  # in a row without a new byte

_CHUNK_BYTES = 1 << 20


def read_index(source: RepositorySource, trusted: Collection[str]) -> tuple[Index, list[str]]:
    """Return the index and its trusted signers. Raises RepositoryError if it is missing, unsigned or altered."""
    return unwrap(_read_document(source, INDEX), Index, trusted, INDEX)


def read_bundle(source: RepositorySource, entry: Entry, trusted: Collection[str]) -> tuple[Bundle, list[str]]:
    """Return the bundle of an index entry, and its signers; raises RepositoryError if it does not match the entry."""
    content = _read_document(source, entry.path)
    if hashlib.sha256(content).hexdigest() != entry.sha256:
        raise RepositoryError(f"{entry.path}: altered, or truncated: publish {entry.family} again")
    bundle, signers = unwrap(content, Bundle, trusted, entry.path)
    if (bundle.family, bundle.version) != (entry.family, entry.version):
        raise RepositoryError(f"{entry.path}: does not match the index: publish {entry.family} again")
    return bundle, signers


def read_plan(
    source: RepositorySource, device: str, trusted: Collection[str], serial: int = 0
) -> tuple[Plan, list[str]]:
    """Return a device's plan, and its signers. serial: of the last plan that the device read.

    Raises RepositoryError if the plan is missing, unsigned, altered, of another device, or older than that serial.
    """
    path = plan_path(device)
    plan, signers = unwrap(_read_document(source, path), Plan, trusted, path)
    if plan.device != device:
        raise RepositoryError(f"{path}: is the plan of {plan.device}: plan {device} again")
    if plan.serial < serial:
        raise RepositoryError(
            f"{path}: replayed: serial {plan.serial}, and {serial} was seen before: plan {device} again"
        )
    return plan, signers


def fetch(
    source: RepositorySource,
    bundle: Bundle,
    into: Path,
    models: Collection[str] | None = None,
    existing: Mapping[str, Path] | None = None,
) -> Path:
    """Return a folder `FAMILY-VERSION` in `into` with the bundle's verified files, which jetsel.zoo.scan can read.

    models: whose files to fetch; None: all. here: files on the same disk by SHA-256, which are linked. The folder has
    exactly these files, whatever an earlier call left. After an interruption, the same call continues. Raises
    RepositoryError; then the folder does not exist.
    """
    files = bundle.files if models is None else bundle.files_for(models)
    done = into / f"{bundle.family}-{bundle.version}"
    work = into / f"{TEMPORARY}{done.name}"
    try:
        if done.is_dir():
            if not _unexpected_files(done, files) and all(_is_intact(done / file.name, file) for file in files):
                return done
            shutil.rmtree(work, ignore_errors=True)
            done.rename(work)
        (work / "calibration").mkdir(parents=True, exist_ok=True)
        for other in _unexpected_files(work, files):
            other.unlink()
        for file in files:
            target = work / file.name
            if not _is_intact(target, file) and not _link_existing(file, target, existing or {}):
                part = into / f"{TEMPORARY}{file.sha256}.gz"
                _download(source, file, part)
                _expand(part, file, target)
        if not any((work / "calibration").iterdir()):
            (work / "calibration").rmdir()
        else:
            flush(work / "calibration")
        flush(work)
        work.rename(done)
        flush(into)
    except OSError as fault:
        raise RepositoryError(f"{into}: not written ({fault.strerror}): {repair_of(fault)}") from fault
    return done


def _unexpected_files(folder: Path, files: Sequence[File]) -> list[Path]:
    """Return files of a folder that are none of these, such as models of an earlier plan."""
    expected_paths = {folder / file.name for file in files}
    return [path for path in folder.rglob("*") if path.is_file() and path not in expected_paths]


def check_blob(source: RepositorySource, file: File) -> None:
    """Download and verify one file's blob in a temporary folder. Raises RepositoryError, OSError."""
    with tempfile.TemporaryDirectory(prefix="jetsel-") as scratch:
        part = Path(scratch, "blob.gz")
        _download(source, file, part)
        _expand(part, file, Path(scratch, "file"))


def _read_document(source: RepositorySource, name: str) -> bytes:
    content, failures = b"", 0
    while True:
        try:
            with source.open(name)[0] as stream:
                content = b""
                while len(content) <= MAX_DOCUMENT_BYTES and (chunk := stream.read(_CHUNK_BYTES)):
                    content += chunk
        except CONNECTION_ERRORS as fault:
            failures += 1
            if failures == ATTEMPTS:
                raise _unreachable_error(name, fault) from fault
            continue
        if len(content) > MAX_DOCUMENT_BYTES:
            raise RepositoryError(f"{name}: larger than {MAX_DOCUMENT_BYTES} bytes: publish it again")
        return content


def _download(source: RepositorySource, file: File, part: Path) -> None:
    """Download the rest of a blob into `part`. Raises RepositoryError."""
    failures = 0
    part.touch()
    while (size_before := part.stat().st_size) != file.compressed_bytes:
        if size_before > file.compressed_bytes:
            part.unlink()
            size_before = 0
        fault = _append_download(source, file, part, size_before)
        failures = 0 if part.stat().st_size > size_before else failures + 1
        if failures == ATTEMPTS:
            raise _unreachable_error(file.blob, fault)


def _append_download(source: RepositorySource, file: File, part: Path, size_before: int) -> Exception | None:
    """Append what arrives to the bytes of `part`; return the error that ended it, None if the stream ended."""
    with part.open("ab") as out:
        try:
            stream, size = source.open(file.blob, size_before)
        except CONNECTION_ERRORS as fault:
            return fault
        with stream:
            out.truncate(size)
            while True:
                try:
                    chunk = stream.read(min(_CHUNK_BYTES, file.compressed_bytes - size + 1))
                except CONNECTION_ERRORS as fault:
                    return fault
                size += len(chunk)
                if size > file.compressed_bytes:
                    raise RepositoryError(f"{file.blob}: larger than its bundle states: publish {file.name} again")
                if not chunk:
                    return None
                out.write(chunk)


def _expand(part: Path, file: File, target: Path) -> None:
    """Write a blob's content, at most the size in the bundle; delete the blob in any case. Raises RepositoryError."""
    digest, written = hashlib.sha256(), 0
    try:
        with gzip.open(part) as blob, target.open("wb") as out:
            while content := blob.read(_CHUNK_BYTES):
                written += len(content)
                if written > file.bytes:
                    raise RepositoryError(
                        f"{file.blob}: expands to more than its bundle states: publish {file.name} again"
                    )
                digest.update(content)
                out.write(content)
            out.flush()
            os.fsync(out.fileno())
        if digest.hexdigest() != file.sha256:
            raise _altered_error(file)
    except BaseException as fault:
        target.unlink(missing_ok=True)
        if isinstance(fault, (gzip.BadGzipFile, EOFError, zlib.error)):
            raise _altered_error(file) from fault
        raise
    finally:
        part.unlink()


def _is_intact(path: Path, file: File) -> bool:
    return path.is_file() and path.stat().st_size == file.bytes and sha256_of(path) == file.sha256


def _link_existing(file: File, target: Path, existing: Mapping[str, Path]) -> bool:
    """Link a file that is on the disk already; return whether there was one and it is intact."""
    copy = existing.get(file.sha256)
    if copy is None:
        return False
    target.unlink(missing_ok=True)
    target.hardlink_to(copy)
    return _is_intact(target, file)


def _altered_error(file: File) -> RepositoryError:
    return RepositoryError(f"{file.blob}: altered, its sha256 does not match its name: publish {file.name} again")


def _unreachable_error(name: str, fault: Exception | None) -> RepositoryError:
    why = fault or "it ends too early each time"
    return RepositoryError(f"{name}: cannot be downloaded ({why}): try again when the repository can be reached")
