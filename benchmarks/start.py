"""What it takes to install treecaps and to get one answer: disk, processor time, memory, imports.

    python benchmarks/start.py --beside magika --json

Installs this checkout without extras into a new virtual environment, and another package into one
of its own, if asked for. Then both look at one file again and again, in turns, each time in a new
process; the first time does not count. Help and the server are measured too.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from origin import origin

from treecaps.cli.main import COMMANDS

ROOT = Path(__file__).parent.parent
FILE = ROOT / "examples" / "programs" / "gcd" / "gcd.py"
PORT = 8791


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--beside", help="a package with a command of its name, as magika")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        places = {"treecaps": install(Path(home) / "treecaps", str(ROOT))}
        words = {"treecaps": ["classify", str(FILE)]}
        if options.beside:
            name = options.beside
            places[name], words[name] = install(Path(home) / name, name), [str(FILE)]
        found: dict[str, Any] = {
            name: {"megabytes": megabytes(place), **runs}
            for (name, place), runs in zip(
                places.items(), measure(places, words, options.runs), strict=True
            )
        }
        found["treecaps"] |= {
            "imports_ms": imports(places["treecaps"]),
            "help_seconds": {
                name: median(run(places["treecaps"], [name, "--help"])[0] for _ in range(5))
                for name in COMMANDS
            },
        }
        install(Path(home) / "treecaps", f"{ROOT}[serve]")
        found["treecaps"]["server_seconds"] = [serve(places["treecaps"]) for _ in range(5)]
    result = {"packages": found, **origin()}
    print(json.dumps(result, indent=1) if options.json else result)


def install(folder: Path, what: str) -> Path:
    """Install a package into a virtual environment; return its command."""
    if not folder.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    # Bytecode belongs to an installation, whatever the environment says.
    environment = {key: os.environ[key] for key in os.environ if key != "PYTHONDONTWRITEBYTECODE"}
    words = [str(folder / "bin" / "pip"), "install", "-q", "--disable-pip-version-check", what]
    subprocess.run(words, check=True, env=environment, stderr=subprocess.DEVNULL)
    return folder / "bin" / folder.name


def megabytes(command: Path) -> dict[str, float]:
    """Return the size of an installation without pip, in all and by its largest packages."""
    sizes: Counter[str] = Counter()
    for path in command.parent.parent.glob("lib/python*/site-packages/**/*"):
        if path.is_file() and not path.is_symlink():
            package = path.parts[path.parts.index("site-packages") + 1]
            if not re.match("pip|setuptools|_distutils", package):
                sizes[package] += path.stat().st_size
    largest = {name: round(size / 1e6, 1) for name, size in sizes.most_common(8)}
    return {"all": round(sum(sizes.values()) / 1e6, 1), **largest}


def run(command: Path, words: list[str]) -> tuple[float, float]:
    """Run a command; return its processor seconds and its peak of memory in MB."""
    process = subprocess.Popen(
        [str(command), *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} {' '.join(words)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def measure(
    places: dict[str, Path], words: dict[str, list[str]], runs: int
) -> list[dict[str, Any]]:
    """Run the commands in turns."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in places}
    for number in range(runs + 1):
        for name, command in places.items():
            taken = run(command, words[name])
            if number:
                found[name].append(taken)
    rows = []
    for every in found.values():
        seconds = [one for one, _ in every]
        low, _, high = quantiles(seconds, n=4)
        rows.append(
            {
                "cpu_seconds": round(median(seconds), 3),
                "cpu_seconds_quartiles": [round(low, 3), round(high, 3)],
                "peak_mb": round(max(peak for _, peak in every)),
            }
        )
    return rows


def imports(command: Path) -> dict[str, float]:
    """Return the milliseconds that imports take, in all and by the largest packages."""
    best: dict[str, int] = {}
    for _ in range(5):
        words = [str(command.with_name("python")), "-X", "importtime", "-m", "treecaps"]
        done = subprocess.run(
            [*words, "classify", str(FILE)], capture_output=True, text=True, check=True
        )
        for microseconds, module in re.findall(r"import time: +(\d+) \|.*\| +(\S+)", done.stderr):
            best[module] = min(best.get(module, 1 << 60), int(microseconds))
    packages: Counter[str] = Counter()
    for module, least in best.items():
        packages[module.partition(".")[0]] += least
    largest = {name: round(sum_ / 1000, 1) for name, sum_ in packages.most_common(8)}
    return {"all": round(sum(best.values()) / 1000, 1), **largest}


def serve(command: Path) -> float:
    """Return the seconds until a server answers."""
    begun = time.perf_counter()
    words = [str(command), "serve", "--port", str(PORT)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while time.perf_counter() - begun < 60:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/healthz", timeout=1):
                    seconds = time.perf_counter() - begun
                    break
            except OSError:
                time.sleep(0.01)
        else:
            raise SystemExit("the server does not answer")
        process.terminate()
    return round(seconds, 3)


if __name__ == "__main__":
    main()
