"""Java's regular expressions, part by part: read, translated, run. The front is `javaregex`."""
