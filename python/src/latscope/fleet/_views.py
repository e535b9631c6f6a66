"""Views over the files of a snapshot, as SQL that both engines take. No value of a lake stands in it."""

import re

from ._schema import TABLES

_LOW = "(bucket - 128 * shift) * POWER(2, shift)"
_SHIFT = "GREATEST(CAST(FLOOR(bucket / 128.0) AS INT) - 1, 0)"

#: Runs with the numbers, from 1, of their group of peers (same processor, kernel and state), which `listed`
#: has as a text, and of their machine.
_PEERS = """
    SELECT run_id, machine_id, day, cpu_model, kernel, busy,
           CAST(DENSE_RANK() OVER (ORDER BY cpu_model, kernel, busy) AS INT) AS peers,
           CAST(DENSE_RANK() OVER (ORDER BY cpu_model, kernel, busy) AS STRING) AS listed,
           CAST(DENSE_RANK() OVER (ORDER BY machine_id) AS INT) AS machine
    FROM (SELECT *, CASE WHEN COALESCE(others, 0) > 0.2 OR COALESCE(stolen, 0) > 0.05
                    OR COALESCE(throttled, 0) > 0.01 THEN 1 ELSE 0 END AS busy FROM runs) t"""


def views(has_lost: bool) -> dict[str, str]:
    """Returns the views by name, in the order in which they are made. Each reads `NAME_files` or views
    before it; with `has_lost` also the table `lost` of copies that do not count (run_id, batch)."""
    found = dict[str, str]()
    for name in ("runs", "points", "h"):
        copy = "SELECT 1 FROM lost WHERE lost.run_id = f.run_id AND lost.batch = f.batch"
        found[name] = f"SELECT f.* FROM {name}_files f" + (f" WHERE NOT EXISTS ({copy})" if has_lost else "")
    columns = ", ".join(TABLES["series"].names)
    ranked = "*, ROW_NUMBER() OVER (PARTITION BY series_id ORDER BY identity, title) place"
    found["series"] = f"SELECT {columns} FROM (SELECT {ranked} FROM series_files) t WHERE place = 1"
    found["peers"] = _PEERS
    found["daily"] = "SELECT * FROM daily_files"
    found["buckets"] = f"""
        SELECT bucket, {_LOW} AS low, {_LOW} + POWER(2, shift) - 1 AS high
        FROM (SELECT DISTINCT bucket, {_SHIFT} AS shift FROM h WHERE bucket < 5376) t"""
    found["quantiles"] = _quantiles(
        "SELECT day, series_id, bucket, CAST(SUM(n) AS BIGINT) n FROM h GROUP BY day, series_id, bucket"
    )
    found["daily_quantiles"] = _quantiles(
        "SELECT day, series_id, bucket, CAST(SUM(n) AS BIGINT) n FROM daily GROUP BY day, series_id, bucket"
    )
    return found


def tables_in(sql: str) -> list[str]:
    """Returns the tables that a query may read: those whose name it has, and `h` for a view."""
    words = set(re.findall(r"\w+", sql.lower()))
    derived = words & {"buckets", "quantiles"}
    rolled = words & {"daily_quantiles"}
    return sorted((words & TABLES.keys()) | ({"h"} if derived else set()) | ({"daily"} if rolled else set()))


def _quantiles(merged: str) -> str:
    """Returns quantiles of all samples of a day, ns, by latscope's rule: nearest rank, the middle of its
    bucket, NULL above the median where fewer than ten samples lie above."""
    parts = [("p10", 100), ("p50", 500), ("p90", 900), ("p99", 990), ("p99_9", 999)]
    ranks = [(name, f"FLOOR((total * {of} + 999) / 1000)") for name, of in parts]
    chosen = ", ".join(f"MIN(CASE WHEN cum >= {rank} THEN bucket END) AS b_{name}" for name, rank in ranks)
    enough = {
        name: "TRUE" if of <= 500 else f"total - {rank} >= 10"
        for (name, of), (_, rank) in zip(parts, ranks, strict=True)
    }
    shift = "GREATEST(CAST(FLOOR(b_{0} / 128.0) AS INT) - 1, 0)"
    middle = f"((b_{{0}} - 128 * {shift}) * POWER(2, {shift}) + (POWER(2, {shift}) - 1) / 2)"
    figures = ", ".join(
        f"CASE WHEN b_{name} < 5376 AND {enough[name]} "
        f"THEN {middle.format(name)} * tick_ps / 1000 END AS {name}"
        for name, _ in parts
    )
    return f"""
        WITH m AS ({merged}),
        c AS (SELECT *, CAST(SUM(n) OVER (PARTITION BY day, series_id ORDER BY bucket) AS BIGINT) cum,
                     CAST(SUM(n) OVER (PARTITION BY day, series_id) AS BIGINT) total FROM m),
        q AS (SELECT day, series_id, total, {chosen} FROM c GROUP BY day, series_id, total)
        SELECT q.day, q.series_id, s.probe, s.title, total AS samples, {figures}
        FROM q JOIN series s ON s.series_id = q.series_id"""
