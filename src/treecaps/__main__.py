"""``python -m treecaps``: the command line."""

from treecaps.cli.main import run

if __name__ == "__main__":
    run()
