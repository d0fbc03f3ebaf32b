"""Stopping a command by Ctrl-C or by SIGTERM: both clean up before the process ends."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from signal import SIG_DFL, SIGINT, SIGTERM, getsignal, signal
from threading import current_thread, main_thread

import typer

INTERRUPTED, TERMINATED = 128 + SIGINT, 128 + SIGTERM
"""Exit codes after Ctrl-C and after SIGTERM, as shells define them."""


@contextmanager
def stoppable() -> Iterator[None]:
    """Let SIGTERM do what Ctrl-C does, but with its own exit code.

    Only the first SIGTERM counts, until the process ends. Some programs send two (`timeout` sends one to the process
    and one to its group), and the second must not interrupt the cleanup. A process that ignores SIGTERM keeps ignoring
    it.
    """
    terminated = False

    def terminate(*_: object) -> None:
        nonlocal terminated
        if not terminated:
            terminated = True
            raise KeyboardInterrupt

    previous_handler = getsignal(SIGTERM)
    if current_thread() is main_thread() and previous_handler is SIG_DFL:
        signal(SIGTERM, terminate)
    try:
        yield
    except KeyboardInterrupt as interrupt:
        typer.echo("stopped", err=True)
        raise typer.Exit(TERMINATED if terminated else INTERRUPTED) from interrupt
    finally:
        if getsignal(SIGTERM) is terminate and not terminated:
            signal(SIGTERM, previous_handler)
    if terminated:
        raise typer.Exit(TERMINATED)


@contextmanager
def starting_spark() -> Iterator[None]:
    """Hold back Ctrl-C and SIGTERM while Spark starts, and restore their handlers afterwards.

    - A Java process whose start is interrupted outlives this process, because it can report its port to no one.
    - PySpark installs its own handler for Ctrl-C, which cancels all jobs from within whatever call to Java it
      interrupts. Queries would then fail instead of stopping, and the interrupted call would read the reply of the
      other call.
    - Py4J logs each interrupted call with a traceback; a filter hides these.
    """
    if current_thread() is not main_thread():
        yield
        return
    received: list[int] = []
    logging.getLogger().addFilter(_is_no_interrupt)
    handlers = {signal_number: getsignal(signal_number) for signal_number in (SIGINT, SIGTERM)}
    for signal_number, handler in handlers.items():
        if callable(handler):
            signal(signal_number, lambda signal_number, _: received.append(signal_number))
    try:
        yield
    finally:
        for signal_number, handler in handlers.items():
            signal(signal_number, handler)
        # Also if Spark did not start: a signal to the process group has stopped its Java too, which is no failure.
        for signal_number, handler in handlers.items():
            if signal_number in received and callable(handler):
                handler(signal_number, None)


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith("KeyboardInterrupt while sending command")
