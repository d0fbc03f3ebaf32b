"""Trades at or above the latest quote of their symbol, with the news of the last five minutes."""

import os

import numpy as np
import pyarrow as pa

import braid
from replay import collect, replay

QUERY = """
SELECT t.symbol, t.price, q.ask, t.price - q.ask AS above, n.headline
FROM trades [NOW] AS t, quotes [PARTITION BY symbol ROWS 1] AS q, news [RANGE 5 MINUTES] AS n
WHERE t.symbol = q.symbol AND t.symbol = n.symbol AND t.price >= q.ask
"""

SYMBOLS = ["ALPS", "BRDG", "CRWN", "DUNE"]
CLOSE = 1_800_000_000
"""The end of trading, in microseconds after its beginning."""


def streams() -> dict[str, pa.Table]:
    """Half an hour of trading. A last row after the close advances the watermarks, so that all results become final."""
    generator = np.random.default_rng(1)

    def ticks(stream: str, count: int, **columns: object) -> pa.Table:
        times = [*np.sort(generator.integers(0, CLOSE, count)).tolist(), 2 * CLOSE]
        symbols = [*generator.choice(SYMBOLS, count).tolist(), f"close of {stream}"]
        return pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "symbol": symbols, **columns})

    def prices(count: int, mean: float) -> list[float]:
        return [*generator.normal(mean, 1, count).round(2).tolist(), 0.0]

    return {
        "trades": ticks("trades", 300, price=prices(300, 100.5)),
        "quotes": ticks("quotes", 600, ask=prices(600, 101)),
        "news": ticks("news", 20, headline=[*(f"story {number}" for number in range(20)), ""]),
    }


def main(session: braid.Session | None = None) -> pa.Table:
    session = session or braid.Session(log=os.devnull)
    for name, table in streams().items():
        session.stream(name, replay(session.spark, table))
    return collect(session.sql(QUERY))


if __name__ == "__main__":
    print(main().slice(0, 10).to_pandas())
