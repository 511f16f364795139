"""Two tasks on one device, one where mistakes are cheap and one that matters: `python examples/two_tasks.py [IMAGES]`.

As in the motivating example of MODI (Ogden and Guo, section 3.1): each task has its own group of models and says how
accurate an answer must be, and models are reused between the groups. The first task names everyday things by the
starter family. The second tells the owner's classes apart by heads that are trained here, over the same backbones.
IMAGES holds a folder for each class; left out, the classes are pieces of the demo's photographs. Half of them train
the heads, the others say how accurate each path is. All that is made is removed at the end.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import cv2

from jetsel import Client
from jetsel.base.errors import RequirementsError
from jetsel.cli.demo import HOW_TO_GET_PHOTOGRAPHS, photographs
from jetsel.cli.temporary import daemon
from jetsel.zoo import STARTER, scan

OWN = "own"
PIECES = 8  # along each side of a photograph of the demo
SHOWN = 6  # photographs that both tasks are asked about


def main() -> None:
    """Train and calibrate the second task's models, then ask both tasks about some photographs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos", metavar="IMAGES", type=Path, nargs="?", help="Folder with one subfolder per class")
    parser.add_argument("--cheap", type=float, default=0.45, help="Minimum accuracy for the first task (default: 0.45)")
    parser.add_argument("--matters", type=float, default=0.9, help="Minimum accuracy for the second one (default: 0.9)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jetsel-") as name:
        work = Path(name)
        os.environ["STATE_DIRECTORY"] = str(work / "state")  # where the commands and the daemon keep all
        train, other = halves(options.photos or pieces(work / "pieces"), work)
        jetsel("models", "train-head", train, "--backbone", "starter", "--family", OWN)
        jetsel("calibrate", other, "--family", OWN, "--force")  # its figures are wanted, whatever is proven better
        with daemon(calibrations=work / "state" / "calibrations") as client:
            tell_of_groups(client, work / "state")
            paths = sorted(other.glob("*/*"))
            for path in paths[:: max(1, len(paths) // SHOWN)][:SHOWN]:
                print(f"{path.parent.name}/{path.name}")
                print(f"  mistakes are cheap: {asked(client, path, 'starter', options.cheap)}")
                print(f"  mistakes are expensive: {asked(client, path, OWN, options.matters)}")


def tell_of_groups(client: Client, state: Path) -> None:
    """Print how accurate each path of each group is, and how many models they share."""
    for family in client.status().families:
        known = [f"{one.policy} {one.accuracy:.3f} in {one.mean_ms:.2f} ms" for one in family.operating_points or []]
        print(f"{family.name}: {', '.join(known)}")
    starter, own = scan([STARTER]).families["starter"], scan([state / "models"]).families[OWN]
    files = {model.manifest.sha256 for model in starter.models}
    shared = [model.manifest.name for model in own.models if model.manifest.sha256 in files]
    shares = f"{OWN} shares the weights of {len(shared)} of its {len(own.models)} models with starter"
    print(f"{shares}; only the heads differ")


def asked(client: Client, path: Path, family: str, least_accuracy: float) -> str:
    """Return a task's answer about an image, in words."""
    try:
        answer = client.classify(path, family=family, least_accuracy=least_accuracy)
    except RequirementsError as refused:
        return f"refused: {refused}"
    return f"{answer.label} ({', '.join(ran.model for ran in answer.ran)} ran: {answer.because})"


def jetsel(*arguments: object) -> str:
    """Run a command as an owner does and return what it prints; end with what it says where it fails."""
    print(f"$ jetsel {' '.join(map(str, arguments))}", flush=True)
    command = [sys.executable, "-m", "jetsel", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return done.stdout


def halves(photos: Path, work: Path) -> tuple[Path, Path]:
    """Return two folders that share out the photographs of each class: those to train on, and the others."""
    found = work / "train", work / "other"
    for folder in (one for one in sorted(photos.iterdir()) if one.is_dir()):
        for half in found:
            (half / folder.name).mkdir(parents=True)
        for number, file in enumerate(sorted(folder.iterdir())):
            (found[number % 2] / folder.name / file.name).symlink_to(file.resolve())
    return found


def pieces(folder: Path) -> Path:
    """Cut the demo's photographs into pieces, those of each in a folder for its class."""
    found = photographs()
    if not found:
        sys.exit(HOW_TO_GET_PHOTOGRAPHS)
    for text, file in found.items():
        picture = cv2.imread(str(file))
        (folder / text).mkdir(parents=True)
        height, width = (side // PIECES for side in picture.shape[:2])
        for number in range(PIECES**2):
            top, left = number // PIECES * height, number % PIECES * width
            cv2.imwrite(str(folder / text / f"{number:02}.png"), picture[top : top + height, left : left + width])
    return folder


if __name__ == "__main__":
    main()
