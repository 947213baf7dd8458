"""Pages for the browser: one file each, readable offline, that run no code but their own."""
