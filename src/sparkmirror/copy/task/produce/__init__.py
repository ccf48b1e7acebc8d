"""The target side of a task: queued batches, Produce requests in flight, transactions."""
