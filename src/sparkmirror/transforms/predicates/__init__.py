"""Connect's predicates: which records a transformation is applied to."""
