"""Reproduction: the tables of the paper, trained and scored anew, beside what it printed."""
