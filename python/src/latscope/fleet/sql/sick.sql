-- Of each machine of a range and each series: where its samples lie (buckets of three deciles), and how many lie above
-- the 95th percentile of all its peers, which tails.sql gives. Several runs of a machine are added: their buckets are
-- peers of a frame. A range keeps the rows that are sorted in memory.
WITH m AS (
    SELECT r.peers, r.machine, h.series_id, h.bucket, h.n
    FROM h JOIN peers r ON r.run_id = h.run_id WHERE h.machine_id BETWEEN :first AND :last
),
c AS (
    SELECT *, CAST(SUM(n) OVER (PARTITION BY peers, machine, series_id ORDER BY bucket) AS BIGINT) AS cum,
           CAST(SUM(n) OVER (
               PARTITION BY peers, machine, series_id ORDER BY bucket
               RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
           ) AS BIGINT) AS total
    FROM m
)
SELECT c.peers, c.series_id, c.machine, MAX(total) AS total,
       MIN(CASE WHEN cum * 10 >= total * 3 THEN c.bucket END) AS q30,
       MIN(CASE WHEN cum * 2 >= total THEN c.bucket END) AS q50,
       MIN(CASE WHEN cum * 10 >= total * 7 THEN c.bucket END) AS q70,
       CAST(SUM(CASE WHEN c.bucket > tail.bucket THEN n ELSE 0 END) AS BIGINT) AS above
FROM c JOIN (SELECT * FROM (VALUES :tails) AS t(peers, series_id, bucket)) tail
    ON tail.peers = c.peers AND tail.series_id = c.series_id
GROUP BY c.peers, c.series_id, c.machine
