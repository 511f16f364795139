"""`jetsel edge open-network`: a drop-in that lets the service speak with the edge, and with nobody else."""

from __future__ import annotations

import ipaddress
import os
import socket
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from jetsel.base.errors import ConfigError
from jetsel.cli.install_service import ROOT, run_commands, write_files
from jetsel.cli.options import ConfigFile

DROP_IN = Path("/etc/systemd/system/jetsel.service.d/edge.conf")
RESOLV_CONF = Path("/etc/resolv.conf")
COMMANDS = ["systemctl daemon-reload", "systemctl try-restart jetsel.service"]
TEXT = """# Made by `jetsel edge open-network`: the daemon's unit has no network without it.
[Service]
RestrictAddressFamilies=AF_INET AF_INET6
IPAddressAllow={addresses}
"""


def open_network(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be done, and change nothing.")] = False,
    prefix: Annotated[
        Path, typer.Option(metavar="ROOT", help="Write the file below this folder, and run nothing.")
    ] = ROOT,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the drop-in again.")] = False,
    config: ConfigFile = None,
) -> None:
    """Let the daemon's service reach the configured edge server, by a drop-in for systemd.

    The service may then send to the addresses of edge.url, to the name servers if it holds a name, and to no other.
    Run the command again when these change. It restarts the daemon.
    """
    from jetsel.site import config_file

    path = prefix.absolute() / DROP_IN.relative_to("/")
    runs = prefix.absolute() == ROOT and not dry_run
    if runs and os.geteuid() != 0:
        raise ConfigError("only root may change the system's service: give this command with sudo")
    if remove:
        typer.echo(f"remove {path}")
        if not dry_run:
            path.unlink(missing_ok=True)
    else:
        urls = config_file.applied(config).edge.urls
        if not urls:
            raise ConfigError('edge.url: name the edge, as in url = "http://edge.local:8000"')
        found = dict.fromkeys(address for url in urls for address in addresses(url))
        write_files({path: TEXT.format(addresses=" ".join(found))}, dry_run)
    run_commands(COMMANDS, runs)


def addresses(url: str) -> list[str]:
    """Return what the service must reach to ask this edge; raises ConfigError where its name means nothing here."""
    host = urlsplit(url).hostname or ""
    try:
        return [str(ipaddress.ip_address(host))]
    except ValueError:
        pass
    try:
        found = {str(entry[4][0]).partition("%")[0] for entry in socket.getaddrinfo(host, None)}
    except OSError as error:
        raise ConfigError(f"edge.url: {host} has no address: {error}; name an address, or see to its name") from None
    return sorted(found | _name_servers())


def _name_servers() -> set[str]:
    try:
        lines = RESOLV_CONF.read_text().splitlines()
    except OSError:
        return set()
    return {words[1] for line in lines if (words := line.split())[:1] == ["nameserver"] and len(words) > 1}
