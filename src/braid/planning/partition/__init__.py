"""One plan for each part of the key space."""
