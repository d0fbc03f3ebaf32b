"""The simulated host: deployments over a network in virtual time, with the real engines and the real runtime.

Begin with `simulate.py`, which plans, and `run.py`, where things happen. `measuring.py` measures what planners want to
know, `links.py` knows how long a batch takes from one site to another, and `simulation.py` holds the outcome.
"""
