"""Small texts that some parser needs minutes for."""
