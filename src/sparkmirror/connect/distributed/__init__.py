"""The workers of one group: what each member says and gets, and who runs what."""
