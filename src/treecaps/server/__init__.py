"""A server that answers over HTTP what the command line answers, and its page."""
