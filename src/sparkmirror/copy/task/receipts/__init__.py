"""The receipts of a task attempt: collected from acknowledged batches, divided by epochs."""
