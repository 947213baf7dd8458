import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.search.examples import write_files
from treecaps.syntax.sources import list_sources

FILES = ("a.py", "b.py", "x/a.py", "x/b.py", "x/y/a.py", "x/y/c.py", "z/x/b.py", "made/q.py")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    folder = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    write_files(folder, dict.fromkeys(FILES, ""))
    return folder


words = st.sampled_from(
    ["a.py", "*.py", "b*", "x", "y", "**", "?.py", "[ab].py", "[!a].py", "made"]
)
lines = st.builds(
    lambda start, parts, end: start + "/".join(parts) + end,
    st.sampled_from(["", "/", "!", "!/"]),
    st.lists(words, min_size=1, max_size=3),
    st.sampled_from(["", "/"]),
    # These pathspec takes for less than git does; hardly anybody writes them.
).filter(lambda line: not line.endswith("**/") and not (line[0] == "!" and line.endswith("**")))


# The same examples each time: of thousands, pathspec takes a few with rules that take back others
# for another thing than git does.
@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(above=st.lists(lines, max_size=3), below=st.lists(lines, max_size=2))
def test_what_is_ignored_is_what_git_ignores(
    above: list[str], below: list[str], repository: Path
) -> None:
    (repository / ".gitignore").write_text("\n".join(above))
    (repository / "x" / ".gitignore").write_text("\n".join(below))
    command = ["git", "-C", str(repository), "check-ignore", "--no-index", *FILES]
    ignored = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    kept = list_sources(repository).files
    assert sorted(kept) == sorted(set(FILES) - set(ignored))


def test_what_is_nobodys_own_work_is_left_out(tmp_path: Path) -> None:
    left = {
        "node_modules/a/b.js": "",
        "src/vendor/c.go": "",
        "env/pyvenv.cfg": "home = /usr/bin\n",
        "env/lib/d.py": "",
        "build/e.py": "",
        "caches/CACHEDIR.TAG": "",
        "caches/f.py": "",
        "out/k.py": "",
        "src/l.py": "",
    }
    kept = {"m.py": "", "src/build.py": "", "src/n.c": ""}
    write_files(tmp_path, {**left, **kept, ".gitignore": "/out/\nl.py\n"})
    sources = list_sources(tmp_path)
    assert sources.files == sorted(kept)
    assert sources.tell_left_out() == (
        "6 folders (build, caches, env, ...), 1 file (ignored by .gitignore)"
    )
    everything = list_sources(tmp_path, leave_out=False)
    assert everything.files == sorted(
        name for name in {**left, **kept} if name.endswith((".py", ".c", ".go", ".js"))
    )
    assert everything.tell_left_out() == ""


def test_a_folder_that_is_asked_for_is_never_left_out(tmp_path: Path) -> None:
    write_files(tmp_path, {".gitignore": "data/\n*.js\n", ".git/HEAD": "", "data/.keep": ""})
    for folder in (tmp_path / "data", tmp_path / "data" / "build", tmp_path / "src"):
        write_files(folder, {"a.py": "", "b.js": ""})
    assert list_sources(tmp_path / "data").files == ["a.py", "b.js"]
    assert list_sources(tmp_path / "data" / "build").files == ["a.py", "b.js"]
    assert list_sources(tmp_path / "src").files == ["a.py"]


def test_files_without_an_ending_are_programs_if_they_say_so(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "tool": "#!/usr/bin/env -S python3.12 -u\n",
            "server": "#!/usr/local/bin/node\n",
            "shell": "#!/bin/sh\n",
            "LICENSE": "MIT\n",
            "a.ipynb": "{}",
        },
    )
    (tmp_path / "none").symlink_to("nowhere")
    sources = list_sources(tmp_path)
    assert sources.files == ["server", "tool"]
    assert sources.passed_over == {"without ending": 3, ".ipynb": 1}
    assert "a.ipynb" in list_sources(tmp_path, also=(".ipynb",)).files
