"""Copying partitions from one cluster to another.

    control/   the messages between the driver and its tasks, and their encrypted connection
    driver/    the conductor: grants leases to tasks, keeps the ledger, recovers after failures
    task/      one copy task: fetch, convert, produce, report

The modules at this level are shared by both parts.
"""
