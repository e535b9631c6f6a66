-- Bucket of the 95th percentile of each series, over all samples of a group of peers.
WITH pool AS (
    SELECT r.peers, h.series_id, h.bucket, CAST(SUM(h.n) AS BIGINT) AS n
    FROM h JOIN peers r ON r.run_id = h.run_id GROUP BY r.peers, h.series_id, h.bucket
),
c AS (
    SELECT *, CAST(SUM(n) OVER (PARTITION BY peers, series_id ORDER BY bucket) AS BIGINT) AS cum,
           CAST(SUM(n) OVER (PARTITION BY peers, series_id) AS BIGINT) AS total
    FROM pool
)
SELECT peers, series_id, MIN(CASE WHEN cum * 20 >= total * 19 THEN bucket END) AS bucket
FROM c GROUP BY peers, series_id ORDER BY peers, series_id
