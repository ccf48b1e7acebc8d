"""Which slot of Spark runs which task of which connector."""
