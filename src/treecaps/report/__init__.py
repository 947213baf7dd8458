"""The report that a training ends with."""
