"""Write the service's files below ROOT, where a distribution keeps them: python systemd/deb/units.py ROOT."""

from __future__ import annotations

import sys
from pathlib import Path

from jetsel.cli.install_service import OTHER_FOLDERS, SYSTEM_UNITS, system_files

EXECUTABLE = Path("/usr/bin/jetsel")
# Under /lib, not /usr/lib: systemd and udev 237 on Ubuntu 18.04 look for units and rules there.
DISTRIBUTION = {
    SYSTEM_UNITS: "lib/systemd/system",
    OTHER_FOLDERS["sysusers.d"]: "usr/lib/sysusers.d",
    OTHER_FOLDERS["tmpfiles.d"]: "usr/lib/tmpfiles.d",
    OTHER_FOLDERS["udev"]: "lib/udev/rules.d",
    OTHER_FOLDERS["grafana"]: "usr/share/jetsel/grafana",
}


def main(root: Path) -> None:
    """Write each file; raises KeyError for one whose place is not known here."""
    for path, text in system_files(EXECUTABLE).items():
        place = root / DISTRIBUTION[path.parent] / path.name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
