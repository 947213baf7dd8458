"""What becomes of variables: blocks of their uses, and the walk through syntax that finds them."""

# Importing these registers their rules.
from treecaps.syntax.dataflow import branches, definitions, expressions, jumps, loops
from treecaps.syntax.dataflow.walk import Walk

__all__ = ["Walk", "branches", "definitions", "expressions", "jumps", "loops"]
