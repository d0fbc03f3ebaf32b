"""The list of experiments; `braid experiments` runs them."""

from __future__ import annotations

import json
import sys
from importlib import import_module

from rich.console import Console

from braid.errors import FileError, did_you_mean
from experiments.report import Report

EXPERIMENTS = {
    "iflow_approaches": "figure 2 of the IFLOW paper: planning and deployment together against one after the other",
    "iflow_approaches_run": "figure 2 by running the queries: network usage measured under simulation",
    "iflow_cluster_size": "figures 6 to 9: search space and cost of Bottom-Up and Top-Down by cluster size",
    "iflow_npc": "figures 10 and 11: net present cost between Top-Down and Bottom-Up",
    "iflow_synthetic": "figure 12: all planners on the synthetic workload",
    "iflow_enterprise": "figures 13 and 14: cost and operators on the airline's workload",
    "iflow_scalability": "figure 15: search space by network size",
    "iflow_deployment_time": "figure 16: time to deployment",
    "pmjoin_example_run": "example 1 of the PMJoin paper by running it: what its three schemes ship, measured",
    "pmjoin_heuristic": "figure 5 of the PMJoin paper: STREAMJOINOPT by data range",
    "pmjoin_streams": "figures 6 and 7: by number of streams, and of streams at a node",
    "pmjoin_partitions": "figures 8 and 9: partition functions by number of parts, and routing",
    "pmjoin_sensitivity": "figure 10: partition functions by number of streams",
    "pmjoin_attributes": "figure 11: joins on several attributes",
    "pmjoin_run": "figures 8 to 11 by running: tuples, bytes and processor time of partitioned joins, measured",
    "nos_updates_run": "figures 4 and 5 and table 3 by running: costs and messages of plans that follow a rate",
    "nos_updates": "table 3 of the NOS paper, and the plans behind its figure 4",
    "moves_shared": "what a plan change between sites copies although both plans have it, by length of the windows",
    "dcape_distribution": "figures 19 and 20 of the D-CAPE paper: network connections",
}


def run(name: str, *, quiet: bool = False) -> Report:
    """Run one experiment and write its page."""
    report = Report(name, f"{name}: {EXPERIMENTS[name]}", quiet=quiet)
    import_module(f"experiments.{name}").run(report)
    report.write()
    return report


def main(names: list[str], as_json: bool = False) -> int:
    """Run the named experiments, or all; `--list` lists them. Raises a `FileError` for an unknown name.

    With `as_json`, the list is printed as JSON, or one line for each page that was written.
    """
    console = Console(stderr=as_json)
    if names == ["--list"] and as_json:
        print(json.dumps(EXPERIMENTS))
        return 0
    if names == ["--list"]:
        for name, about in EXPERIMENTS.items():
            console.print(f"{name}: {about}")
        return 0
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        raise FileError(f"there is no experiment '{unknown[0]}'; {did_you_mean(unknown[0], list(EXPERIMENTS))}")
    chosen = names or list(EXPERIMENTS)
    for number, name in enumerate(chosen, 1):
        console.rule(f"{number} of {len(chosen)}: {name}")
        report = run(name, quiet=as_json)
        if as_json:
            print(json.dumps({"experiment": name, "about": EXPERIMENTS[name], "page": str(report.page)}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
