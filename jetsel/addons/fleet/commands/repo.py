"""`jetsel repo`: a signed repository of models for devices, in a folder or an object store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jetsel.addons.fleet.signing import make_key, read_key
from jetsel.cli.options import ConfigFile, Json, emit

if TYPE_CHECKING:
    from jetsel.addons.fleet.documents import Bundle, Index
    from jetsel.addons.fleet.sources import RepositorySource

repo = typer.Typer(no_args_is_help=True, help="A repository of models that many devices read. See docs/fleet.md.")

Url = Annotated[
    str,
    typer.Argument(
        metavar="URL",
        help="Repository: a folder, s3://BUCKET/FOLDER, another URL that fsspec opens; http(s)://HOST/FOLDER to read.",
    ),
]
Keys = Annotated[
    list[Path],
    typer.Option("--sign", metavar="FILE", help="Private key to sign with; repeatable, to replace a key."),
]
Trusted = Annotated[list[Path], typer.Option("--trust", metavar="FILE", help="Trusted public key; repeatable.")]


@repo.command()
def key(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Private key to write; FILE.pub becomes the public one.")
    ],
) -> None:
    """Make a pair of keys: the private one signs here, the public one goes to the devices."""
    public = make_key(file)
    typer.echo(f"{file} is the private key: keep it secret; {file}.pub is the public key for devices: {public}")


@repo.command()
def init(url: Url, sign: Keys) -> None:
    """Make an empty repository."""
    from jetsel.addons.fleet import publishing
    from jetsel.addons.fleet.storage import Storage

    publishing.init(Storage(url), [read_key(path) for path in sign])
    typer.echo(f"{url} is a repository; next: jetsel repo publish {url} --family NAME --sign FILE")


@repo.command()
def publish(
    url: Url,
    family: Annotated[str, typer.Option(metavar="NAME", help="Model family; see `jetsel models list`.")],
    sign: Keys,
    trust: Trusted = [],  # noqa: B006  # typer makes its own list
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Publish a family's models, with the calibration in use, as its next version.

    Equal files are stored once. The repository must be signed by one of these keys, or by one that --trust names.
    """
    from jetsel.addons.fleet import publishing
    from jetsel.addons.fleet.storage import Storage
    from jetsel.base.config import calibrations_folder
    from jetsel.base.errors import UnknownFamilyError, did_you_mean
    from jetsel.site.site import read_site

    site = read_site(config)
    families = site.zoo.families
    if family not in families:
        raise UnknownFamilyError(f"no family {family}{did_you_mean(family, families)}: see jetsel models list")
    private = [read_key(path) for path in sign]
    files, models = publishing.files_of(families[family], calibrations_folder(site.config.models))
    bundle = publishing.publish(Storage(url), family, models, files, private, [read_key(path) for path in trust])
    if bundle is None:
        text = f"family {family} is already published with the same files; nothing changed"
    else:
        raw, packed = _megabytes(bundle)
        sizes = f"{len(bundle.models)} models, {raw} MB, {packed} compressed"
        text = f"family {family} is at version {bundle.version}: {sizes}"
    emit({"family": family, "published": bundle}, json, text)


@repo.command("list")
def list_bundles(url: Url, trust: Trusted, json: Json = False) -> None:
    """List what is published: families, versions, models, sizes, and whose signature was trusted."""
    _, index, bundles = _read_repository(url, trust)
    plain = {"serial": index.serial, "bundles": [{"bundle": one, "signers": signers} for one, signers in bundles]}
    emit(plain, json, lambda: _print_bundles(f"{url}, serial {index.serial}", bundles))


def _print_bundles(title: str, bundles: list[tuple[Bundle, list[str]]]) -> None:
    from jetsel.cli.terminal import console, table

    shown = table("family", ">version", "models", ">MB", ">MB compressed", "signed by")
    shown.title = title
    for bundle, signers in bundles:
        models, keys = ", ".join(model.name for model in bundle.models), ", ".join(key[:16] for key in signers)
        shown.add_row(bundle.family, str(bundle.version), models, *_megabytes(bundle), keys)
    console().print(shown)


@repo.command()
def verify(url: Url, trust: Trusted, json: Json = False) -> None:
    """Download everything that is published, and check every signature and hash."""
    from jetsel.addons.fleet.reading import check_blob
    from jetsel.base.errors import RepositoryError

    source, index, bundles = _read_repository(url, trust)
    blobs = {file.sha256: file for bundle, _ in bundles for file in bundle.files}
    wrong = []
    for file in blobs.values():
        try:
            check_blob(source, file)
        except RepositoryError as fault:  # noqa: PERF203  # check the others
            wrong.append(str(fault))
    for line in () if json else wrong:
        typer.echo(f"jetsel: {line}", err=True)
    plain = {"serial": index.serial, "bundles": len(index.bundles), "files": len(blobs), "wrong": wrong}
    emit(plain, json, f"{len(index.bundles)} bundles, {len(blobs)} files: {len(blobs) - len(wrong)} are whole")
    raise typer.Exit(bool(wrong))


@repo.command()
def gc(
    url: Url,
    trust: Trusted,
    younger_than_s: Annotated[float, typer.Option(min=0, help="Minimum age in seconds of what is removed.")] = 3600.0,
    json: Json = False,
) -> None:
    """Remove files that no published bundle needs: earlier versions, and leftovers of an interrupted publish."""
    from jetsel.addons.fleet.publishing import unused_objects
    from jetsel.addons.fleet.storage import Storage

    storage = Storage(url)
    unused = unused_objects(storage, [read_key(path) for path in trust], younger_than_s)
    for one in unused:
        storage.remove(one.name)
        if not json:
            typer.echo(f"removed {one.name}: {one.bytes} bytes")
    total = sum(one.bytes for one in unused)
    plain = {"removed": [one.name for one in unused], "bytes": total}
    emit(plain, json, f"removed {len(unused)} files of {total} bytes")


def _read_repository(url: str, trust: list[Path]) -> tuple[RepositorySource, Index, list[tuple[Bundle, list[str]]]]:
    """Return the repository, read as devices do if they can, its index, and its bundles with their signers."""
    from jetsel.addons.fleet.reading import read_bundle, read_index
    from jetsel.addons.fleet.sources import repository_of
    from jetsel.addons.fleet.storage import Storage

    scheme, separator, _ = url.partition("://")
    source = repository_of(url) if not separator or scheme in ("file", "http", "https") else Storage(url)
    keys = [read_key(path) for path in trust]
    index, _ = read_index(source, keys)
    return source, index, [read_bundle(source, entry, keys) for entry in index.bundles]


def _megabytes(bundle: Bundle) -> tuple[str, str]:
    """Return the size of all files, and of their blobs."""
    raw, packed = sum(file.bytes for file in bundle.files), sum(file.compressed_bytes for file in bundle.files)
    return f"{raw / 1e6:.2f}", f"{packed / 1e6:.2f}"
