"""Planning: in which order to join the streams of a query, at which sites, and at what cost. Begin with `plan.py`.

1. `problem.py` has the problem: a query, its statistics, a topology and a cost model. Streams and sites are numbers in
   it, and sets of streams are bit masks.
2. `cost/` has the figures (rate, population and row size of the join of each set of streams) and the cost models.
   `transport.py` answers what shipping between sites costs under a cost model.
3. Planners turn a problem into a solution. `planners.py` lists them; they live in `order/` (the join order, mostly with
   the sites), `place/` (the sites of a given order), `cluster/` (hierarchies of sites) and `partition/` (a plan for
   each part of the key space). `reuse/` finds derived streams of other queries that a query can use.
4. `solution/` has the three shapes of a solution: a tree, a tree with partitioned joins, or a sequence for each head.
5. `lowering/` turns a solution into the program of each site. `deployment.py` holds solution, bill and programs.

To add a planner: write a class with `name` and `plan(problem)`, and add it to `ALL` in `planners.py`. If it returns a
new shape of solution, add that to `solution/solution.py` and `lowering/lower.py`. `tests/planning/test_conformance.py`
then checks it with all others. To add a cost model: implement `CostModel` of `cost/models.py`, and add it to `MODELS`.
"""
