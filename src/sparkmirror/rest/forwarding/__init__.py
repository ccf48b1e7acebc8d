"""Requests that another worker of the group must carry out."""
