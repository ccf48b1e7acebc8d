"""ConfigDef: keys, types, validators, and the validation of a config against them."""
