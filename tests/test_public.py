import subprocess
import sys

import pytest

import treecaps


def test_a_wrong_call_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="unknown language 'klingon'") as caught:
        treecaps.Program("x", "klingon")
    assert isinstance(caught.value, treecaps.UsageError)
    assert isinstance(caught.value, treecaps.TreeCapsError)


def test_dir_lists_the_public_names_alone() -> None:
    assert dir(treecaps) == sorted([*treecaps.__all__, "__version__"])
    assert all(getattr(treecaps, name) for name in dir(treecaps))


def test_the_package_runs_as_the_command_line() -> None:
    words = [sys.executable, "-m", "treecaps"]
    shown = subprocess.check_output([*words, "classify", "--help"], text=True)
    assert shown.startswith("Usage: treecaps classify ")
    done = subprocess.run([*words, "no-such"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "treecaps: error: there is no command 'no-such'; see treecaps --help\n"
