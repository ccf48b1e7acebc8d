"""What is wrong or without effect in a file, and where each value comes from."""
