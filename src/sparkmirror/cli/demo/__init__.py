"""`sparkmirror demo`: a live mirror between two clusters, checked at its end."""
