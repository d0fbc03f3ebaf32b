"""How a running query gets from one plan to another between sites, as a protocol without I/O and without a clock.

The new plan is another generation of the query, which reads the same intakes. A moment of event time divides the work:
the old generation gives the results before it, the new one those from it on. Begin with `change`: what the sites tell
each other, and what follows from it. `gate` holds a site of the old plan to its promise, `readiness` lets one of the
new plan catch up, and `succession` says which generations a query has before, during and after a change.
"""
