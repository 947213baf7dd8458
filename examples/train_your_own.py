"""Train a model on classes of your own, a folder for each, and save it."""

import sys
from pathlib import Path

from treecaps import TreeCapsClassifier

PROGRAMS = Path(__file__).parent / "programs"

files = sorted(PROGRAMS.glob("*/*"))
labels = [file.parent.name for file in files]  # a folder for each class
train, test = slice(0, None, 2), slice(1, None, 2)

# A linear model is trained in a moment; model="treecaps", the default, is better and slower.
model = TreeCapsClassifier(model="svm-tokens")
model.fit(files[train], labels[train])
print(f"classes: {', '.join(model.classes_)}")
print(f"accuracy on the others: {model.score(files[test], labels[test]):.0%}")
if len(sys.argv) > 1:
    model.model_.save(sys.argv[1])  # treecaps classify --model FOLDER FILE
