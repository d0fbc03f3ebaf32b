"""Derived streams of other queries that a query can use."""
