"""The path of a row into its window: conditions, keys, order, lifetime.

Begin with `inlet.py`. `admission.py` prepares rows for the window, `screen.py` evaluates conditions and keys,
`lifetime.py` computes starts and ends, and `row_counter.py` ends rows of windows that count rows.
"""
