import subprocess
import sys

_FAULTS = """
import resource, sys, torch
from treecaps.nn.memory import keep_memory
torch.set_num_threads(1)
if sys.argv[1] == "keep":
    keep_memory()
for _ in range(3):
    torch.ones(4_000_000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    torch.ones(4_000_000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    command = [sys.executable, "-c", _FAULTS, how]
    return int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def test_kept_memory_is_not_fetched_again() -> None:
    assert 10 * faults("keep") < faults("default")
