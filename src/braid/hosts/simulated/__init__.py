"""The simulated host: a deployment over a network in virtual time, with the real engines and the real runtime.

Begin with `simulate.py`. `links.py` knows how long a batch takes from one site to another; `simulation.py` holds the
outcome.
"""
