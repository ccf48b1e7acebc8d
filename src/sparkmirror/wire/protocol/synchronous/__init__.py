"""Requests that wait for their answer, through a router and without an event loop."""
