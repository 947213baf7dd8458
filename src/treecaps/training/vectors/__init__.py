"""Vectors for the kinds of nodes, learned from trees without labels."""

METHODS = ("parent", "coding", "word2vec", "random")
