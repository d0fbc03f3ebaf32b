"""Notices when the topology of a network file is edited while sites run."""

from __future__ import annotations

import logging

from braid.errors import BraidError
from braid.files.network import NetworkFile, load_network
from braid.model.network.topology import Topology, check_rewiring

logger = logging.getLogger(__name__)


class EditedFile:
    """A network file, together with its topology file if it has one."""

    def __init__(self, file: NetworkFile) -> None:
        self._paths = file.paths
        self._topology = file.topology
        self._written = self._times()

    def _times(self) -> list[int]:
        """When the files that exist were last written."""
        return [path.stat().st_mtime_ns for path in self._paths if path.exists()]

    def edited_topology(self) -> Topology | None:
        """The new topology, if its figures have changed since the last call; else None.

        A file that cannot be read, or that has other sites or links, is ignored, with a warning.
        """
        written = self._times()
        if written == self._written:
            return None
        self._written = written
        try:
            topology = load_network(self._paths[0]).topology
            check_rewiring(self._topology, topology)
        except BraidError as error:
            logger.warning("the edited network file is ignored: %s", error)
            return None
        if topology == self._topology:
            return None
        self._topology = topology
        return topology
