"""Live rows and their indexes.

Begin with `window_state.py`, the window of one stream. `join_state.py` holds kept combinations in such a window and
`missing.py` knows which of them are not found yet. `chain.py` and `nearby.py` are the compiled loops of the indexes.
"""
