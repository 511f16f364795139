"""Write the service's files below ROOT, where a distribution keeps them: python systemd/deb/units.py ROOT."""

from __future__ import annotations

import sys
from pathlib import Path

from jetsel.cli.service.units import PLACES, SYSTEM_UNITS, system_files

EXECUTABLE = Path("/usr/bin/jetsel")
# Under /lib, not /usr/lib: systemd and udev 237 on Ubuntu 18.04 look for units and rules there.
DISTRIBUTION = {
    SYSTEM_UNITS: "lib/systemd/system",
    PLACES["sysusers.d"]: "usr/lib/sysusers.d",
    PLACES["tmpfiles.d"]: "usr/lib/tmpfiles.d",
    PLACES["udev"]: "lib/udev/rules.d",
}


def main(root: Path) -> None:
    """Write each file; raises KeyError for one whose place is not known here."""
    for file in system_files(EXECUTABLE):
        place = root / DISTRIBUTION[file.path.parent] / file.path.name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(file.text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
