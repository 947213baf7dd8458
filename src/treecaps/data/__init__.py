"""Data sets of programs, and corpora of their trees on disk."""
