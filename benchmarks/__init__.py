"""Benchmarks: each compares with a peer in the same run and checks that both give the same rows first."""
