"""`jetsel keys`: the keys that a daemon and its clients show each other over tcp: new ones, and whose are allowed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jetsel.cli.options import ConfigFile, Endpoint, Json

if TYPE_CHECKING:
    from jetsel.config import Config
    from jetsel.keys import KeyFolder

SYSTEM_KEYS = "/etc/jetsel/keys"
SERVICE_USER = "jetsel"  # whom the service runs as
EXIT_FAILED = 1

keys = typer.Typer(no_args_is_help=True, help="Make keys for tcp, and say whose a daemon lets in.")
Folder = Annotated[
    Path | None,
    typer.Option("--folder", metavar="FOLDER", help="The daemon's keys. Left out: [server] keys, or /etc/jetsel/keys."),
]


@keys.command()
def new(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Left out: USER@HOST.")] = None,
    server: Annotated[bool, typer.Option("--server", help="The daemon's own pair, in its folder.")] = False,
    folder: Annotated[
        Path | None,
        typer.Option(help="Where to. Left out: ~/.config/jetsel, or with --server what the other commands use."),
    ] = None,
    owner: Annotated[
        str | None,
        typer.Option(help="With --server: whom the daemon runs as. Left out: jetsel, where root asks and it exists."),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="With --server: in place of the pair that is there.")] = (
        False
    ),
    config: ConfigFile = None,
) -> None:
    """Make a pair of keys: NAME.key_secret stays where it is, NAME.key is for the daemon's owner.

    With --server, make the daemon's pair: server.key is for every client. The daemon uses it from its next start on.
    """
    from jetsel.errors import ConfigError

    if server:
        if name is not None:
            raise ConfigError("a daemon's own key has no name: leave NAME out, or --server")
        _new_server(folder, owner, config, replace=replace)
    elif replace or owner is not None:
        raise ConfigError("--owner and --replace go with --server: a client's key is never overwritten")
    else:
        _new_client(name, folder)


def _new_server(folder: Path | None, owner: str | None, config: Path | None, *, replace: bool) -> None:
    found, _ = _daemons(folder, config)
    pair = found.make_server(_owner(owner), replace=replace)
    typer.echo(f"the daemon's secret key: {found.server_secret}")
    typer.echo(f"for every client: {found.server_public}, or its 40 letters: {pair.public}")
    typer.echo(f'the daemon uses it from its next start on, with [server] keys = "{found.path}"')


def _new_client(name: str | None, folder: Path | None) -> None:
    from jetsel.errors import ConfigError
    from jetsel.keys import check_name, files
    from jetsel.keys.folder import write_pair

    chosen = check_name(name or _default_name())
    into = (folder or Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "jetsel").absolute()
    try:
        files.make_folder(into, 0o700)
    except OSError as error:
        raise ConfigError(f"cannot make {into}: {error.strerror}; name another with --folder") from None
    public, secret = into / f"{chosen}.key", into / f"{chosen}.key_secret"
    write_pair(public, secret, chosen, None)
    typer.echo(f"your secret key, for --key or $JETSEL_KEY: {secret}")
    typer.echo(f"for the daemon's owner, who runs jetsel keys allow {public.name}: {public}")


@keys.command()
def allow(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The client's public key: NAME.key.")],
    admin: Annotated[bool, typer.Option("--admin", help="It may change the daemon too: reload.")] = False,
    name: Annotated[str | None, typer.Option(help="What the daemon calls it. Left out: the file's name.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="In place of the key of this name that is there.")] = False,
    folder: Folder = None,
    config: ConfigFile = None,
    endpoint: Endpoint = None,
) -> None:
    """Let the owner of a key ask over tcp, and tell a running daemon."""
    from jetsel.errors import ConfigError
    from jetsel.keys import files
    from jetsel.keys.certificate import parse

    found, values = _daemons(folder, config)
    certificate = parse(files.read(file, forbidden=0), str(file))
    if certificate.secret is not None:
        raise ConfigError(f"{file} is a secret key, which nobody else should have seen: give its .key file")
    called = name or file.name.removesuffix(".key")
    if found.path.exists() and (other := found.allowed().by_public.get(certificate.public)) and other.name != called:
        raise ConfigError(f"{file} is allowed already, as {other.name}: jetsel keys revoke {other.name} first")
    found.allow(called, certificate.public, is_admin=admin, replace=replace)
    typer.echo(f"{called} is allowed{' as admin' if admin else ''}")
    _tell(values, endpoint)


@keys.command()
def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As `jetsel keys list` shows it.")],
    folder: Folder = None,
    config: ConfigFile = None,
    endpoint: Endpoint = None,
) -> None:
    """Let the owner of a key ask no more, and tell a running daemon: it refuses standing connections too."""
    found, values = _daemons(folder, config)
    found.revoke(name)
    typer.echo(f"{name} is no longer allowed")
    _tell(values, endpoint)


@keys.command("list")
def list_(json: Json = False, folder: Folder = None, config: ConfigFile = None) -> None:
    """Show whose keys are allowed, and which files are left out and why."""
    import msgspec
    from rich.markup import escape

    from jetsel.cli.terminal import console, table

    found, _ = _daemons(folder, config)
    allowed = found.allowed()
    if json:
        rows = [{"name": k.name, "admin": k.is_admin, "key": k.public} for k in allowed.by_public.values()]
        typer.echo(msgspec.json.encode({"allowed": rows, "left_out": allowed.left_out}).decode())
        return
    shown = table("name", "may", "key")
    for key in allowed.by_public.values():
        shown.add_row(escape(key.name), "ask and change" if key.is_admin else "ask", escape(key.public))
    out = console()
    out.print(shown if allowed.by_public else f"no key is allowed in {found.path}", markup=False)
    for line in allowed.left_out:
        out.print(f"left out: {line}", markup=False, style="red")


def _daemons(folder: Path | None, config: Path | None) -> tuple[KeyFolder, Config]:
    """The folder of the daemon's keys, and its configuration."""
    from jetsel.cli import settings
    from jetsel.keys import KeyFolder

    values = settings.read(settings.locate(config))
    return KeyFolder((folder or Path(values.server.keys or SYSTEM_KEYS)).absolute()), values


def _owner(name: str | None) -> tuple[int, int] | None:
    """Whose the daemon's secret key is to be: who the daemon runs as; None for who calls."""
    import pwd

    from jetsel.errors import ConfigError

    if name is None and os.geteuid() != 0:
        return None
    try:
        found = pwd.getpwnam(name or SERVICE_USER)
    except KeyError:
        if name is None:
            return None
        raise ConfigError(f"--owner: there is no user {name!r} here; example: --owner {SERVICE_USER}") from None
    return found.pw_uid, found.pw_gid


def _default_name() -> str:
    """USER@HOST in the letters that a key's name may have."""
    import getpass
    import re
    import socket

    wanted = f"{getpass.getuser()}@{socket.gethostname()}"
    return re.sub(r"[^A-Za-z0-9._@-]", "-", wanted).lstrip("._@-")[:64] or "client"


def _tell(values: Config, endpoint: str | None) -> None:
    """Have a running daemon read the keys again; exits with 1 where it listens and could not."""
    from jetsel.cli.shelf import RELOAD_MS
    from jetsel.client import Client
    from jetsel.endpoint import VARIABLE
    from jetsel.errors import JetselError, NoDaemonError, ReloadFailedError

    where = endpoint or (None if os.environ.get(VARIABLE) else values.server.endpoint)
    try:
        with Client(where, timeout_ms=RELOAD_MS) as client:
            client.reload()
    except NoDaemonError:
        typer.echo("no daemon listens: it holds from the next start on")
    except ReloadFailedError as fault:
        typer.echo(f"the daemon has read its keys, where those are in order; else nothing changed: {fault}", err=True)
        raise typer.Exit(EXIT_FAILED) from None
    except JetselError as fault:
        typer.echo(f"the daemon was not told ({fault}): it holds once somebody who may runs jetsel reload", err=True)
        raise typer.Exit(EXIT_FAILED) from None
    else:
        typer.echo("the daemon has read its keys again")
