"""The part of copying that runs in the driver: leases, ledger, fences, takeovers, offset syncs."""
