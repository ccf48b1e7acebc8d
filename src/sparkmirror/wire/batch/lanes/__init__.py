"""How a batch is copied, and why: forwarded, merged with others, or opened and written again."""
