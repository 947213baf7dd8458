"""What networks are trained for, one file for each task."""

from treecaps.tasks.base import TASKS, Task, check_answers, get_task, register_task
from treecaps.tasks.bugs import Bugs
from treecaps.tasks.classification import Classification
from treecaps.tasks.similarity import Similarity

__all__ = [
    "TASKS",
    "Bugs",
    "Classification",
    "Similarity",
    "Task",
    "check_answers",
    "get_task",
    "register_task",
]
