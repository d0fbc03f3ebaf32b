"""Several sites: what each of them runs of a deployment, and how.

`compiling` turns the site programs of a deployment into the work of each site, with `site_compiler` for one site and
`deployed_streams` for what travels between them; `work` is the outcome, and `offer` what later queries may reuse of it.
`weaker_join` is a join for two queries of which one filters more.
`intake` is where streams enter a query, and `deployed` is a query with its intakes and its plans, each a `generation`.
A join of the plan at a site is a `fragment`: a query over the streams that reach the site, run by shards as any other
query is. `node` splits a fragment into shards. `wire` says which columns rows carry between joins, and how their
lifetimes follow from them; `guarding` applies the guards of partitioned plans. `site_spec` is all of this for one site,
as JSON, and `site_watch` measures what the site does. `site` runs a whole site in one process, for simulations. Begin
with `fragment`, then `node`.
"""
