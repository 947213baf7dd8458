"""What a trained model says of programs: answers, scores, and pictures of them."""
