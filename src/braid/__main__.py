"""The entry point of the `braid` command and of `python -m braid`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from signal import SIGINT, default_int_handler, getsignal, signal


def main() -> None:
    with _exit_at_once_on_interrupt():
        from braid.cli import app
    app(prog_name="braid")


@contextmanager
def _exit_at_once_on_interrupt() -> Iterator[None]:
    """Until the block ends, Ctrl-C exits at once and without a traceback: there is nothing to clean up yet."""
    if getsignal(SIGINT) is not default_int_handler:
        yield
        return
    signal(SIGINT, lambda *_: os._exit(128 + SIGINT))
    yield
    signal(SIGINT, default_int_handler)


if __name__ == "__main__":
    main()
