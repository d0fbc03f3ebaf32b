"""Statistics in, instructions out: what is known of a running query, and when another plan is worth a change.

Pure: no I/O, no clock, no thread. Time is an argument.
"""
