"""How a running query gets from one plan to another between sites, as a protocol without I/O and without a clock.

The new plan is another generation of the query, which reads the same intakes. A moment of event time divides the work:
the old generation answers for results before it, the new one for those from it on. `change` says what the sites tell
each other and what follows from it; `gate` is what holds a site of the old plan to its promise.
"""
