"""Networks of sites that queries are planned on.

Begin with `topology` (sites, links and distances); `sites` has its parts. `topology_files` reads and writes them,
`generators` makes networks for examples and experiments, `drawing` draws them.
"""
