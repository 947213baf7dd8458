import subprocess
import sys

# Many tensors at once, all freed: what lies on top of the heap goes back to the system by default.
_FAULTS = """
import resource, sys, torch
from treecaps.nn.memory import tune_malloc
torch.set_num_threads(1)
if sys.argv[1] == "keep":
    tune_malloc()
for number in range(13):
    if number == 3:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    tensors = [torch.ones(size) for size in (300_000, 700_000, 20_000_000) for _ in range(5)]
    del tensors
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    command = [sys.executable, "-c", _FAULTS, how]
    return int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def test_kept_memory_is_not_fetched_again() -> None:
    assert 10 * faults("keep") < faults("default")
