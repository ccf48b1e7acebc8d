"""Where copying of a partition begins or continues: by its ledger entry and both logs."""
