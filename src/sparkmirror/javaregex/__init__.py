"""Java's regular expressions, with Java's meaning and without exponential backtracking."""
