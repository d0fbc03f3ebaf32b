"""Planners that choose the order of joins, most of them with the places."""
