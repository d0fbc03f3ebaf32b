"""How a command is stopped: Ctrl-C by whoever is at the keyboard, SIGTERM by everybody else; both tidy up."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from signal import SIG_DFL, SIGINT, SIGTERM, getsignal, signal
from threading import current_thread, main_thread

import typer

INTERRUPTED, TERMINATED = 128 + SIGINT, 128 + SIGTERM
"""Exit codes, as shells have them."""


@contextmanager
def stoppable() -> Iterator[None]:
    """SIGTERM means here what Ctrl-C means, but for the exit code.

    Only the first counts, to the end of the process: some send two (`timeout`: to the program and to its group), and
    the second must not interrupt the tidying up. Who ignores SIGTERM goes on to ignore it.
    """
    asked = False

    def terminate(*_: object) -> None:
        nonlocal asked
        if not asked:
            asked = True
            raise KeyboardInterrupt

    before = getsignal(SIGTERM)
    if current_thread() is main_thread() and before is SIG_DFL:
        signal(SIGTERM, terminate)
    try:
        yield
    except KeyboardInterrupt as stop:
        typer.echo("stopped", err=True)
        raise typer.Exit(TERMINATED if asked else INTERRUPTED) from stop
    finally:
        if getsignal(SIGTERM) is terminate and not asked:
            signal(SIGTERM, before)
    if asked:
        raise typer.Exit(TERMINATED)


@contextmanager
def starting_spark() -> Iterator[None]:
    """Spark starts here: who wants to stop us waits until it has, and signals then go on to mean what they meant.

    A Java whose start is interrupted outlives us, because it cannot tell its port to anybody. PySpark's own handler
    of Ctrl-C cancels all jobs, from within whatever call to Java it interrupts: queries then fail instead of stopping,
    and the interrupted call gets the answer of the other. Py4J logs every call that it gives up, with a traceback, to
    whoever is at the screen.
    """
    if current_thread() is not main_thread():
        yield
        return
    received: list[int] = []
    logging.getLogger().addFilter(_is_no_interrupt)
    meanings = {number: getsignal(number) for number in (SIGINT, SIGTERM)}
    for number, meaning in meanings.items():
        if callable(meaning):
            signal(number, lambda number, _: received.append(number))
    try:
        yield
    finally:
        for number, meaning in meanings.items():
            signal(number, meaning)
        # Also if Spark did not start: who stops a group of processes has stopped its Java as well.
        for number, meaning in meanings.items():
            if number in received and callable(meaning):
                meaning(number, None)


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith("KeyboardInterrupt while sending command")
