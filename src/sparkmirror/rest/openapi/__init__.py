"""The OpenAPI description of the REST API, made of the routes and a table of operations."""
