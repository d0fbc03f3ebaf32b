"""From finished combinations to result rows.

Begin with `emitter.py`. `exclusion.py` holds results back until no excluded row can match them (NOT EXISTS, EXCEPT);
`groups.py` computes GROUP BY over the results.
"""
