"""Small programs that use Braid; each runs by itself: `python -m examples.network_monitoring`."""
