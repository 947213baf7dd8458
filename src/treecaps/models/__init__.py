"""The networks, one readable file each, and the folder that a trained one is kept in."""
