"""Documents that a program has rejected: they can be read, and do not say what documents of their kind say."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

logger = logging.getLogger(__name__)


class Rejections:
    """What one program has rejected. It warns of each document once."""

    def __init__(self) -> None:
        self._told: set[tuple[str, str, str]] = set()

    @property
    def count(self) -> int:
        """How many documents were rejected. Each is counted once."""
        return len(self._told)

    def add(self, kind: str, key: str, document: Mapping[str, Any], why: str) -> None:
        """Warn of a document, the first time that it is seen."""
        rejected = kind, key, json.dumps(document, sort_keys=True)
        if rejected not in self._told:
            self._told.add(rejected)
            logger.warning("%s", why)
