"""`braid`, also as `python -m braid`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from signal import SIGINT, default_int_handler, getsignal, signal


def main() -> None:
    with _quickly_stopped():
        from braid.cli import app
    app(prog_name="braid")


@contextmanager
def _quickly_stopped() -> Iterator[None]:
    """Ctrl-C while modules are loaded ends the process at once and without a traceback; there is nothing to tidy up."""
    if getsignal(SIGINT) is not default_int_handler:
        yield
        return
    signal(SIGINT, lambda *_: os._exit(128 + SIGINT))
    yield
    signal(SIGINT, default_int_handler)


if __name__ == "__main__":
    main()
