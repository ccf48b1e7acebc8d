"""Connect's data model: Java's values, schemas, structs, logical types, and literals as text."""
