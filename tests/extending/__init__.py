"""What a newcomer adds, each in one file of its own and nothing in the package."""
