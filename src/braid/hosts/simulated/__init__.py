"""The simulated host: deployments over a network in virtual time, with the real engines and the real runtime.

Begin with `simulate.py`, which plans, and `run.py`, which runs everything in the order of virtual time (`agenda.py`).
`feeding.py` brings the rows of streams, `site.py` is one site, and `links.py` knows how long a batch takes from one
site to another. `changes.py` carries out plan changes, with the messages of `control.py`; `deciding.py` has the
controllers that ask for them. `faults.py` chooses what goes wrong, `disruptions.py` lets it go wrong, and
`invariants.py` checks what must hold nevertheless. `measuring.py` and `travelling.py` measure what planners need to
know, and `simulation.py` holds the outcome.
"""
