"""OAUTHBEARER: where tokens come from, and how they are kept and renewed."""
