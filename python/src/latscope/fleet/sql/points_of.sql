-- Figures of made runs from their buckets: quantiles in ns, by the rule of latscope; the rest in ticks.
WITH m AS (
    SELECT h.*, GREATEST(CAST(FLOOR(bucket / 128.0) AS INT) - 1, 0) AS shift, t.tick_ps
    FROM h JOIN ticks t ON t.series_id = h.series_id
    WHERE bucket < 5376
),
v AS (
    SELECT *, CAST(FLOOR((bucket - 128 * shift + 0.5) * POWER(2, shift)) AS BIGINT) AS middle,
           CAST(SUM(n) OVER (PARTITION BY run_id, series_id ORDER BY bucket) AS BIGINT) AS cum,
           CAST(SUM(n) OVER (PARTITION BY run_id, series_id) AS BIGINT) AS total
    FROM m
)
SELECT day, batch, run_id, machine_id, series_id, MAX(total) AS count, 0 AS overflow, MIN(middle) AS min,
       MAX(middle) AS max, CAST(SUM(middle * n) AS BIGINT) AS sum,
       MIN(CASE WHEN cum * 10 >= total THEN middle * tick_ps / 1000 END) AS p10,
       MIN(CASE WHEN cum * 2 >= total THEN middle * tick_ps / 1000 END) AS p50,
       MIN(CASE WHEN cum * 10 >= total * 9 AND total >= 100 THEN middle * tick_ps / 1000 END) AS p90,
       MIN(CASE WHEN cum * 20 >= total * 19 AND total >= 200 THEN middle * tick_ps / 1000 END) AS p95,
       MIN(CASE WHEN cum * 100 >= total * 99 AND total >= 1000 THEN middle * tick_ps / 1000 END) AS p99,
       MIN(CASE WHEN cum * 1000 >= total * 999 AND total >= 10000 THEN middle * tick_ps / 1000 END) AS p99_9
FROM v
GROUP BY day, batch, run_id, machine_id, series_id
ORDER BY machine_id, run_id, series_id
