"""The simulated host: deployments over a network in virtual time, with the real engines and the real runtime.

Begin with `simulate.py`, which plans, and `run.py`, which runs everything in the order of virtual time. `feeding.py`
brings the rows of streams, `site.py` is one site, `links.py` knows how long a batch takes from one site to another, and
`faults.py` chooses what goes wrong. `changes.py` carries out plan changes, with the messages of `control.py`;
`deciding.py` has the controllers that ask for them. `measuring.py` and `travelling.py` measure what planners need to
know, and `simulation.py` holds the outcome.
"""
