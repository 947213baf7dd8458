"""From source code to trees."""
