"""From what the sites of a network tell each other to plan changes between them.

`figures` are what a site tells of its part of a query. `monitor` makes statistics of the figures of all sites, and
`proposal` says when another plan is worth a change. Two controllers decide with them: `central`, where the sites report
to one of them, and `distributed`, where they put their probe sequences in order among themselves.
"""
