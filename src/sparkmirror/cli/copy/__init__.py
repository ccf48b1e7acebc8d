"""`sparkmirror copy`: one copy of topics, planned, run and shown."""
