"""What is released: an archive of the sources, and a wheel made of it."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import treecaps
from tests.conftest import EXAMPLES, ROOT

BUILD = "import sys\nfrom setuptools import build_meta\nprint(build_meta.build_{}(sys.argv[1]))"


def build(kind: str, sources: Path, out: Path) -> Path:
    """Build in a folder, as ``python -m build --no-isolation`` does."""
    words = [sys.executable, "-c", BUILD.format(kind), str(out)]
    done = subprocess.run(words, cwd=sources, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out / done.stdout.split()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release")
    # Building writes beside the sources.
    unneeded = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "*.egg-info", "*.so")
    shutil.copytree(ROOT, folder / "copy", ignore=unneeded)
    archive = build("sdist", folder / "copy", folder)
    with tarfile.open(archive) as files:
        files.extractall(folder / "sources", filter="data")
    (sources,) = (folder / "sources").iterdir()
    for name in ("README.md", "examples/programs", "docs", "tests", "LICENSE"):
        assert (sources / name).exists()
    return build("wheel", sources, folder)


def test_a_wheel_of_the_archive_is_whole(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        names = set(files.namelist())
        (about,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(files.read(about).decode())
    package = ROOT / "src" / "treecaps"
    expected = {
        path.relative_to(package.parent).as_posix()
        for path in package.rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"
        if path.suffix not in (".c", ".h", ".so")
    }
    assert not expected - names
    assert metadata["Version"] == treecaps.__version__
    classifiers = metadata.get_all("Classifier", [])
    for version in ("3.11", "3.12", "3.13"):
        assert f"Programming Language :: Python :: {version}" in classifiers
    assert not [name for name in names if name.startswith(("tests/", "docs/", "benchmarks/"))]


def test_a_wheel_answers_away_from_the_sources(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        files.extractall(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    words = [sys.executable, "-m", "treecaps", "classify", str(EXAMPLES[0])]
    done = subprocess.run(
        words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{EXAMPLES[0]}: binary-search 100%\n"
    place = [sys.executable, "-c", "import treecaps; print(treecaps.__file__)"]
    shown = subprocess.check_output(place, cwd=tmp_path, env=environment, text=True)
    assert Path(shown.strip()).is_relative_to(tmp_path)


def test_the_citation_has_the_version() -> None:
    assert f"\nversion: {treecaps.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {treecaps.__version__} - 20" in (ROOT / "CHANGELOG.md").read_text()
