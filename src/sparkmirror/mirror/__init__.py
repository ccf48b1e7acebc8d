"""The rules of replication as pure functions and frozen values. No I/O, no clock."""
