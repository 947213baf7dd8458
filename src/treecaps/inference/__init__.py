"""What a trained model says of programs: answers and scores."""
