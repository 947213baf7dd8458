"""What these tests share with others."""

from tests.cli.conftest import run_here

__all__ = ["run_here"]
