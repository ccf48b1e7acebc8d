"""Connect's REST API over HTTP. The only package that imports uvicorn and h11."""
