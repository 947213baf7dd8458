"""TreeCaps without PyTorch: the forward pass in NumPy."""
