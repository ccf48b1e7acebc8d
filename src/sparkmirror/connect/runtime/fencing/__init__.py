"""Fencing of tasks of earlier generations, as Connect does it."""
