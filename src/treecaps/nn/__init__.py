"""The layers of the networks, one file each, with equations and shapes."""
