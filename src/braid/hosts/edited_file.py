"""Notices when the topology of a network file is edited while sites run."""

from __future__ import annotations

import logging

from braid.errors import BraidError
from braid.files.network import NetworkFile, load_network
from braid.model.network.topology import Topology, check_rewiring

logger = logging.getLogger(__name__)


class EditedFile:
    """A network file, and the one that its topology is in if that is another."""

    def __init__(self, file: NetworkFile) -> None:
        self._paths = file.paths
        self._topology = file.topology
        self._written = self._times()

    def _times(self) -> list[int]:
        """When the files were written, as far as they are there."""
        return [path.stat().st_mtime_ns for path in self._paths if path.exists()]

    def edited_topology(self) -> Topology | None:
        """The topology, if its figures have changed since it was last asked for.

        A file that cannot be read, or has other sites and links, is left alone, with a word in the log.
        """
        written = self._times()
        if written == self._written:
            return None
        self._written = written
        try:
            topology = load_network(self._paths[0]).topology
            check_rewiring(self._topology, topology)
        except BraidError as error:
            logger.warning("the network goes on as it was: %s", error)
            return None
        if topology == self._topology:
            return None
        self._topology = topology
        return topology
