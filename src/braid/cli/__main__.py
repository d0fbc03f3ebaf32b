"""`python -m braid.cli`, the same as `braid`."""

from braid.cli import app

app(prog_name="braid")
