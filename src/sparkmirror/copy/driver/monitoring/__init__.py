"""What operators see of a conductor: events, and snapshots without news."""
