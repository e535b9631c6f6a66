-- Median and 99th percentile (buckets) of all samples of each series, by a property of the runs, with the machines and
-- runs that they are of: with one machine on a side, it and not the property may make the difference.
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
k AS (
    SELECT p.series_id, r.side, COUNT(DISTINCT r.machine_id) AS machines, COUNT(DISTINCT r.run_id) AS runs
    FROM points p JOIN r ON r.run_id = p.run_id WHERE p.count > 0 GROUP BY p.series_id, r.side
),
c AS (
    SELECT *, CAST(SUM(n) OVER (PARTITION BY series_id, side ORDER BY bucket) AS BIGINT) AS cum,
           CAST(SUM(n) OVER (PARTITION BY series_id, side) AS BIGINT) AS total
    FROM m
)
SELECT s.probe, s.title, c.series_id, c.side, MAX(k.machines) AS machines, MAX(k.runs) AS runs,
       MAX(total) AS samples, MAX(s.tick_ps) AS tick_ps,
       MIN(CASE WHEN cum * 2 >= total THEN c.bucket END) AS b_p50,
       MIN(CASE WHEN cum * 100 >= total * 99 AND total >= 1000 THEN c.bucket END) AS b_p99
FROM c JOIN series s ON s.series_id = c.series_id JOIN k ON k.series_id = c.series_id AND k.side = c.side
GROUP BY s.probe, s.title, c.series_id, c.side
ORDER BY s.probe, c.series_id, c.side
