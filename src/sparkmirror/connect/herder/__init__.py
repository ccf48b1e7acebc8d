"""The herder: requests, queries, validation, start and stop of one worker."""
