"""What the transformations of fields ask of values and make of them."""
