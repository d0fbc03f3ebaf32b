"""Several sites: what each of them runs of a deployment, and how.

`compiling` turns site programs into the work of each site. A join of the plan at a site is a `fragment`: a query over
the streams that reach the site, run by a shard as any other query is. `wire` says which columns rows carry between
joins, and how their lifetimes follow from them; `guarding` applies the guards of partitioned plans. `site` runs all of
it, step by step, and survives crashes with the host's store. Begin with `fragment`, then `site`.
"""
