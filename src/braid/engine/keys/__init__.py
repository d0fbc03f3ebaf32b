"""Values as 64-bit words, which windows index and compare.

Begin with `hashing.py`, the words of join keys. `band_scale.py` makes the words of bands, `nested.py` encodes lists and
structs as bytes, and `ordering.py` sorts the rows of a batch and numbers distinct values.
"""
