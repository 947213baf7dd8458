"""What becomes of variables: blocks of their uses, and the visits of syntax that find them."""
