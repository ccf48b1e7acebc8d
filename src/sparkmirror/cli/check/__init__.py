"""`sparkmirror check`: connects as a file says, and compares rights with what its flows need."""
