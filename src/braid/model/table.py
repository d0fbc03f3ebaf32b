"""The declaration of a table: rows without event time, which streams are joined with."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from braid.errors import StreamError


@dataclass(frozen=True, slots=True)
class Table:
    """A named table. Its rows are alive at all times."""

    name: str
    schema: pa.Schema

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and self.name):
            raise StreamError(f"a table needs a name, not {self.name!r}")
        if not isinstance(self.schema, pa.Schema):
            raise StreamError(f"the columns of table '{self.name}' are an Arrow schema, not {self.schema!r:.80}")
        names = list(self.schema.names)
        duplicate = next((name for name in names if names.count(name) > 1), None)
        if duplicate is not None:
            raise StreamError(f"table '{self.name}' has two columns called '{duplicate}'; rename one of them")
