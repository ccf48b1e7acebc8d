"""The short-lived Spark that answers questions about queries."""
