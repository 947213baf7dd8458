"""Why a model says what it says: what each node, token and line has to do with it."""
