"""Training: from labelled trees to a trained model in its folder."""
