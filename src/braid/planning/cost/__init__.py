"""What a plan costs, and the figures behind it.

Begin with `models.py`, the cost models, and `figures.py`, the expected rate, population and row size of each join.
`shares.py` and `histograms.py` estimate which share of the combinations matches, `bill.py` lists the charges of a
deployment, and `limits.py` refuses figures that are too large to compute with.
"""
