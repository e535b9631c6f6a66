-- Of each machine and series: where its samples lie (buckets of five deciles), and how many lie above the 95th
-- percentile of all its peers. Peers have the same processor, kernel and state (idle or busy).
WITH r AS (
    SELECT run_id, machine_id, DENSE_RANK() OVER (ORDER BY cpu_model, kernel, busy) AS peers
    FROM (SELECT *, CASE WHEN COALESCE(others, 0) > 0.2 OR COALESCE(stolen, 0) > 0.05 OR COALESCE(throttled, 0) > 0.01 THEN 1 ELSE 0 END AS busy FROM runs) t
),
m AS (
    SELECT r.peers, h.machine_id, h.series_id, h.bucket, CAST(SUM(h.n) AS BIGINT) AS n
    FROM h JOIN r ON r.run_id = h.run_id
    GROUP BY r.peers, h.machine_id, h.series_id, h.bucket
),
pool AS (
    SELECT peers, series_id, bucket, CAST(SUM(n) AS BIGINT) AS n, COUNT(*) AS machines FROM m GROUP BY peers, series_id, bucket
),
pool_cum AS (
    SELECT *, CAST(SUM(n) OVER (PARTITION BY peers, series_id ORDER BY bucket) AS BIGINT) AS cum,
           CAST(SUM(n) OVER (PARTITION BY peers, series_id) AS BIGINT) AS total
    FROM pool
),
tail AS (
    SELECT peers, series_id, MIN(CASE WHEN cum * 20 >= total * 19 THEN bucket END) AS bucket
    FROM pool_cum GROUP BY peers, series_id
),
c AS (
    SELECT *, CAST(SUM(n) OVER (PARTITION BY peers, machine_id, series_id ORDER BY bucket) AS BIGINT) AS cum,
           CAST(SUM(n) OVER (PARTITION BY peers, machine_id, series_id) AS BIGINT) AS total
    FROM m
)
SELECT c.peers, c.series_id, c.machine_id, c.total,
       MIN(CASE WHEN cum * 10 >= total THEN c.bucket END) AS q10,
       MIN(CASE WHEN cum * 10 >= total * 3 THEN c.bucket END) AS q30,
       MIN(CASE WHEN cum * 2 >= total THEN c.bucket END) AS q50,
       MIN(CASE WHEN cum * 10 >= total * 7 THEN c.bucket END) AS q70,
       MIN(CASE WHEN cum * 10 >= total * 9 THEN c.bucket END) AS q90,
       CAST(SUM(CASE WHEN c.bucket > tail.bucket THEN n ELSE 0 END) AS BIGINT) AS above
FROM c JOIN tail ON tail.peers = c.peers AND tail.series_id = c.series_id
GROUP BY c.peers, c.series_id, c.machine_id, c.total
ORDER BY c.peers, c.series_id, c.machine_id
