"""What networks read: programs as arrays, one file for each kind of input."""
