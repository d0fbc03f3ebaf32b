"""Figure 10: what partitions bring as the number of streams grows."""

from __future__ import annotations

from matplotlib.axes import Axes

from braid.planning.workloads.skewed import Spread
from experiments.pmjoin_partitions import parts_of, problem_of, total
from experiments.report import Report

COUNTS = (4, 6, 8, 10, 12)
CASES = {"contiguous hot spot": True, "random hot spot": False}
CURVES = (("hash", 1), ("hash", 500), ("range", 500), ("rate", 500), ("hash", 1_000))


def run(report: Report) -> None:
    costs: dict[str, dict[tuple[str, int], list[float]]] = {case: {curve: [] for curve in CURVES} for case in CASES}
    for streams in report.progress(COUNTS, "streams"):
        for case, contiguous in CASES.items():
            problem, figures = problem_of(Spread(similar=False, contiguous=contiguous), streams, seed=5)
            for function, count in CURVES:
                costs[case][function, count].append(total(parts_of(problem, figures, function, count)))

    def label(curve: tuple[str, int]) -> str:
        return {1: "no partitions", 1_000: "a part for each value"}.get(curve[1], f"{curve[0]}, {curve[1]}")

    def draw(axes: list[Axes]) -> None:
        for one, (case, found) in zip(axes, costs.items(), strict=True):
            for curve, values in found.items():
                one.plot(COUNTS, values, marker="o", label=label(curve))
            one.set(title=case, xlabel="streams", ylabel="tuples/s sent", yscale="log")

    for case, found in costs.items():
        report.say(f"{case}, tuples/s sent:")
        report.table(
            ["streams", *map(label, CURVES)],
            [(streams, *(found[curve][row] for curve in CURVES)) for row, streams in enumerate(COUNTS)],
        )
    gains = {
        case: [1 - last / first for first, last in zip(found[CURVES[0]], found[CURVES[3]], strict=True)]
        for case, found in costs.items()
    }
    best = sum(
        found[CURVES[3]][row] <= min(found[CURVES[1]][row], found[CURVES[2]][row]) * 1.0001
        for found in costs.values()
        for row in range(len(COUNTS))
    )
    report.table(
        ["", "paper", "ours"],
        [
            *(
                (
                    f"saved by 500 rate-based parts, {case}",
                    "grows with the streams",
                    ", ".join(f"{gain:.0%}" for gain in found),
                )
                for case, found in gains.items()
            ),
            ("rate-based is best of three", "always", f"{best} of {2 * len(COUNTS)} times"),
        ],
    )
    report.say(
        "Windows are 30 times shorter than in the paper's text (see pmjoin_partitions for why). Rate-based "
        "partitions are best or nearly so, range-based ones need hot values next to each other, and with "
        "different distributions partitions save a large part whatever the number of streams; that the saving "
        "grows with it does not show in single draws of distributions such as these."
    )
    report.plot(draw, 2)
