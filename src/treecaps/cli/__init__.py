"""The command line: it reads options and prints results, and holds no logic of its own."""
