"""States of connectors and tasks, written to the status topic."""
