"""The figures of one worker, from what it knows already. No scrape asks a cluster or a driver."""
