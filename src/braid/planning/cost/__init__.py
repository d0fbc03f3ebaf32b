"""What a plan costs, and from what figures."""
