"""Java's regular expressions, with Java's meaning and without endless backtracking."""
