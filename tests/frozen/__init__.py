"""Model folders as an earlier version wrote them; they must load for ever."""
