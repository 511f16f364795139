"""Make or compare the record: `python -m tests.answers make|check FOLDER...`, each with a folder for each class."""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.answers.fitted import fit
from tests.answers.served import answers

HERE = Path(__file__).parent
ANSWERS, FIT, RECORDING = HERE / "answers.json.gz", HERE / "fit.json", HERE / "recording.sqlite.gz"
SHOWN = 20


def main() -> None:
    """Write what is answered and fitted now, or compare it with what was written; exit 1 where it differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["make", "check"])
    parser.add_argument("folders", type=Path, nargs="*", help="photographs; none: the fit alone")
    options = parser.parse_args()
    with tempfile.NamedTemporaryFile(suffix=".sqlite") as file:
        with gzip.open(RECORDING) as kept:
            shutil.copyfileobj(kept, file)
        file.flush()
        fitted = json.loads(json.dumps(fit(Path(file.name))))
    answered = answers(options.folders) if options.folders else {}
    if options.action == "make":
        FIT.write_text(
            "{" + ",\n".join(f"{json.dumps(part)}: {json.dumps(said)}" for part, said in fitted.items()) + "}\n"
        )
        ANSWERS.write_bytes(gzip.compress(json.dumps(answered, indent=0).encode(), mtime=0))
        return
    with gzip.open(ANSWERS) as kept:
        before = json.load(kept)
    differing = [*_differences("fit", json.loads(FIT.read_text()), fitted)]
    for photograph, told in answered.items():
        differing += _differences(photograph, before[photograph], told)
    print("\n".join(differing[:SHOWN]))
    print(f"{len(answered)} photographs, {len(differing)} differences")
    sys.exit(bool(differing))


def _differences(name: str, before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """One line for each part of the record that is not as it was; parts that are new are no difference."""
    return [f"{name}: {part}: {was} -> {now.get(part)}" for part, was in before.items() if now.get(part) != was]


if __name__ == "__main__":
    main()
