"""Where figures come from."""

import platform
import subprocess
import sys
from pathlib import Path

from treecaps._version import __version__

# Taken when the benchmark starts: the next commit may come while it runs.
_COMMIT = subprocess.run(
    ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
).stdout.strip()


def origin() -> dict[str, str]:
    """Return the command that is running, without where its results go, and the versions."""
    words = sys.argv[1:]
    for option in ("--out", "--keep"):
        if option in words:
            place = words.index(option)
            words = words[:place] + words[place + 2 :]
    return {
        "command": " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *words]),
        "commit": _COMMIT,
        "treecaps": __version__,
        "python": platform.python_version(),
    }
