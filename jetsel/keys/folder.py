"""The folder of a daemon's keys: `server.key_secret`, `server.key`, and `allowed/NAME.key` for each who may ask."""

from __future__ import annotations

import os
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from jetsel.errors import ConfigError
from jetsel.keys import files
from jetsel.keys.certificate import Certificate, check_name, generate, is_name, parse, write

MOST_KEYS = 10_000  # read at each reload
ADMIN = "admin"  # the metadata field that says whether a key may change the daemon: "yes" or "no"


@dataclass(frozen=True)
class AllowedKey:
    """One client that may ask; is_admin: and that may change the daemon."""

    name: str
    public: str
    is_admin: bool


@dataclass(frozen=True)
class AllowedKeys:
    """Who may ask, by public key (Z85), and one line for each file that was left out, with the reason."""

    by_public: dict[str, AllowedKey]
    left_out: tuple[str, ...]


class KeyFolder:
    """The folder at `path`; see docs/protocol.md. owners: user ids that its files may belong to, None: any."""

    def __init__(self, path: Path, owners: AbstractSet[int] | None = None) -> None:
        self.path = path
        self._owners = owners

    @property
    def _how_to_begin(self) -> str:
        return f"sudo jetsel keys new --server --folder {self.path}"

    @property
    def server_public(self) -> Path:
        """The file that every client needs a copy of."""
        return self.path / "server.key"

    @property
    def server_secret(self) -> Path:
        """The file that nobody but the daemon may read."""
        return self.path / "server.key_secret"

    def allowed_file(self, name: str) -> Path:
        """Where the key of this name is, or would be; raises ConfigError where it is no name."""
        return self.path / "allowed" / f"{check_name(name)}.key"

    def server(self) -> Certificate:
        """Return the daemon's own pair; raises ConfigError where there is none, or somebody else may read it."""
        folder_fd = files.open_folder(self.path, self._owners, self._how_to_begin)
        try:
            text = files.read(
                self.server_secret,
                forbidden=files.READABLE,
                owners=self._owners,
                folder_fd=folder_fd,
                repair=self._how_to_begin,
            )
        finally:
            os.close(folder_fd)
        pair = parse(text, str(self.server_secret))
        if pair.secret is None:
            raise ConfigError(f"{self.server_secret} holds no secret key: {self._how_to_begin} --replace")
        return pair

    def allowed(self) -> AllowedKeys:
        """Return who may ask; nobody where there is no folder `allowed`.

        A file that cannot be used lets nobody in and keeps nobody else out: it is left out, with the reason. Raises
        ConfigError where the folder itself is not to be trusted.
        """
        folder = self.path / "allowed"
        os.close(files.open_folder(self.path, self._owners, self._how_to_begin))
        if not folder.exists():
            return AllowedKeys({}, ())
        folder_fd = files.open_folder(folder, self._owners, self._how_to_begin)
        try:
            return self._read_all(folder, folder_fd)
        finally:
            os.close(folder_fd)

    def _read_all(self, folder: Path, folder_fd: int) -> AllowedKeys:
        names = sorted(name.removesuffix(".key") for name in os.listdir(folder_fd) if name.endswith(".key"))
        if len(names) > MOST_KEYS:
            raise ConfigError(f"{folder} holds {len(names)} keys, and {MOST_KEYS} are read: jetsel keys revoke NAME")
        by_public: dict[str, AllowedKey] = {}
        left_out: list[str] = []
        for name in names:
            try:
                key = self._read_one(folder, folder_fd, name)
                other = by_public.setdefault(key.public, key)
                if other is not key:
                    raise ConfigError(f"{folder / name}.key is the key of {other.name} again: remove one of the two")
            except ConfigError as error:  # noqa: PERF203  # reading the file takes longer
                left_out.append(str(error))
        return AllowedKeys(by_public, tuple(left_out))

    def _read_one(self, folder: Path, folder_fd: int, name: str) -> AllowedKey:
        path = folder / f"{name}.key"
        if not is_name(name):
            raise ConfigError(f"{str(path)!r} is not named as a key may be: jetsel keys allow FILE --name NAME")
        text = files.read(path, forbidden=files.WRITABLE, owners=self._owners, folder_fd=folder_fd)
        found = parse(text, str(path))
        if found.secret is not None:
            raise ConfigError(
                f"{path} holds a secret key, which belongs to its owner alone: jetsel keys allow the .key file, "
                "and have its owner make a new pair"
            )
        admin = found.metadata.get(ADMIN, "no")
        if admin not in ("yes", "no"):
            raise ConfigError(f'{path}: {ADMIN} is {admin!r}: write {ADMIN} = "yes" or "no"')
        return AllowedKey(name, found.public, admin == "yes")

    def make_server(self, owner: tuple[int, int] | None, *, replace: bool = False) -> Certificate:
        """Make the folder and the daemon's pair, and return it; owner: (uid, gid) of the daemon, None: who calls.

        replace: over the pair that is there. Raises ConfigError where one is there, or it cannot be written.
        """
        self._make_folders()
        if not replace and (self.server_secret.exists() or self.server_public.exists()):
            raise ConfigError(
                f"{self.path} holds a server's key already: to have every client need a new one, add --replace"
            )
        return write_pair(self.server_public, self.server_secret, "a jetsel daemon", owner, replace=replace)

    def allow(self, name: str, public: str, *, is_admin: bool, replace: bool = False) -> Path:
        """Let the owner of this key ask, from the daemon's next reload on; return the file.

        A key that is allowed just so already stays. Raises ConfigError where the name stands for something else and
        `replace` was not asked for, or the file cannot be written.
        """
        path = self.allowed_file(name)
        self._make_folders()
        if path.exists() and not replace:
            there = self.allowed().by_public.get(public)
            if there == AllowedKey(name, public, is_admin):
                return path
            if there is not None and there.name == name:
                may = "ask and change" if there.is_admin else "ask alone"
                raise ConfigError(f"{name} is allowed already, to {may}: to change what it may, add --replace")
            raise ConfigError(
                f"{path} is there already, with another key: add --replace to put this one in its place, or choose "
                "another --name"
            )
        certificate = Certificate(public, metadata={ADMIN: "yes" if is_admin else "no"})
        files.write(path, write(certificate, f"Who may ask the daemon: {name}"), files.PUBLIC_MODE, replace=replace)
        return path

    def revoke(self, name: str) -> None:
        """Take a key out of those that may ask; raises ConfigError where it is not among them."""
        path = self.allowed_file(name)
        try:
            path.unlink()
        except FileNotFoundError:
            raise ConfigError(f"{path} is not there: see jetsel keys list") from None
        except OSError as error:
            raise ConfigError(f"cannot remove {path}: {error.strerror}; use sudo") from None

    def _make_folders(self) -> None:
        try:
            for folder in (self.path, self.path / "allowed"):
                if not folder.is_dir():
                    files.make_folder(folder, 0o755)
                    folder.chmod(0o755)  # whatever the caller's umask: the daemon's user reads it
        except OSError as error:
            raise ConfigError(f"cannot make {self.path}: {error.strerror}; use sudo, or set [server] keys") from None


def write_pair(
    public_file: Path, secret_file: Path, whose: str, owner: tuple[int, int] | None, *, replace: bool = False
) -> Certificate:
    """Make a pair and write it to two files, the secret half readable by its owner alone; return it.

    Raises ConfigError where one of the files is there and `replace` was not asked for, or cannot be written.
    """
    pair = generate()
    secret_title = f"{whose}: a CURVE key, the secret half, which stays here, readable by its owner alone"
    files.write(secret_file, write(pair, secret_title), files.SECRET_MODE, owner, replace=replace)
    try:
        public = Certificate(pair.public)
        files.write(
            public_file, write(public, f"{whose}: a CURVE key, the public half"), files.PUBLIC_MODE, replace=replace
        )
    except ConfigError:
        secret_file.unlink()
        raise
    return pair
