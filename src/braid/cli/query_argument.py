"""The argument QUERY of `braid explain` and `braid plan`: a query, or the file that holds it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from braid.errors import FileError, reason_of

QueryArgument = Annotated[
    str, typer.Argument(metavar="QUERY", help="A query in quotes, or the name of a file that holds one.")
]


def query_text(argument: str) -> str:
    """The text of the query. An argument of one word is the name of a file, since no query has only one word."""
    if len(argument.split()) != 1:
        return argument
    try:
        return Path(argument).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(
            f"cannot read the query file {argument}: {reason_of(error)}; to give a query itself, put it in quotes"
        ) from error
