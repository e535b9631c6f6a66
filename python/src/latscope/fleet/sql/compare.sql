-- Median and 99th percentile (buckets) of all samples of each series, by a property of the runs.
WITH r AS (
    SELECT run_id, machine_id, CASE :by WHEN 'kernel' THEN kernel WHEN 'model' THEN cpu_model
           WHEN 'architecture' THEN architecture WHEN 'microcode' THEN microcode
           ELSE COALESCE(labels[:label], '') END AS side
    FROM runs
),
m AS (
    SELECT h.series_id, r.side, h.bucket, CAST(SUM(h.n) AS BIGINT) AS n
    FROM h JOIN r ON r.run_id = h.run_id GROUP BY h.series_id, r.side, h.bucket
),
c AS (
    SELECT *, CAST(SUM(n) OVER (PARTITION BY series_id, side ORDER BY bucket) AS BIGINT) AS cum,
           CAST(SUM(n) OVER (PARTITION BY series_id, side) AS BIGINT) AS total
    FROM m
)
SELECT s.probe, s.title, c.series_id, c.side, MAX(total) AS samples, MAX(s.tick_ps) AS tick_ps,
       MIN(CASE WHEN cum * 2 >= total THEN c.bucket END) AS b_p50,
       MIN(CASE WHEN cum * 100 >= total * 99 AND total >= 1000 THEN c.bucket END) AS b_p99
FROM c JOIN series s ON s.series_id = c.series_id
GROUP BY s.probe, s.title, c.series_id, c.side
ORDER BY s.probe, c.series_id, c.side
