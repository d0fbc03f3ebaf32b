"""What planners return: one of three shapes of a placed plan. `planning.lowering` turns each into site programs."""

from __future__ import annotations

from braid.planning.solution.partitioned import PartitionedSolution
from braid.planning.solution.sequenced import SequencedSolution
from braid.planning.solution.tree import TreeSolution

Solution = TreeSolution | PartitionedSolution | SequencedSolution
