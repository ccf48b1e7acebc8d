"""One task: lease, fetch, lane, produce, acknowledgement, runs, report; and who may copy what."""
