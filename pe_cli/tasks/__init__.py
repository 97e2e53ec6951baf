"""Tasks with exact answers: what a corpus cannot show beyond the trained length, they can."""

from pe_cli.tasks.base import Instance, Task, TaskOptions
from pe_cli.tasks.registry import build, canonical_data, names, task_class

__all__ = ["Instance", "Task", "TaskOptions", "build", "canonical_data", "names", "task_class"]
