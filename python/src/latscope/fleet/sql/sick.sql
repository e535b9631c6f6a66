-- Of each machine of a range and each series: where its samples lie (buckets of three deciles), and their mean, ticks,
-- with the middles of the buckets; their sum is exact, so its order does not matter. Several runs of a machine are
-- added: their buckets are peers of a frame. A range keeps the rows that are sorted in memory. The days before :since
-- are apart, each with its number (20261124), and only of idle machines of some groups; later ones are one: day 0.
WITH m AS (
    SELECT r.peers, r.machine, h.series_id, h.bucket, h.n,
           CASE WHEN r.day >= CAST(:since AS DATE) THEN 0 ELSE CAST(REPLACE(CAST(r.day AS STRING), '-', '') AS INT) END
               AS day,
           GREATEST(CAST(FLOOR(h.bucket / 128.0) AS INT) - 1, 0) AS shift
    FROM h JOIN peers r ON r.run_id = h.run_id WHERE h.machine_id BETWEEN :first AND :last
      AND (r.day >= CAST(:since AS DATE) OR ARRAY_CONTAINS(:groups, listed))
),
c AS (
    SELECT *, CAST(SUM(n) OVER (PARTITION BY peers, machine, day, series_id ORDER BY bucket) AS BIGINT) AS cum,
           CAST(SUM(n) OVER (
               PARTITION BY peers, machine, day, series_id ORDER BY bucket
               RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
           ) AS BIGINT) AS total
    FROM m
)
SELECT peers, series_id, machine, day,
       MIN(CASE WHEN cum * 10 >= total * 3 THEN bucket END) AS q30,
       MIN(CASE WHEN cum * 2 >= total THEN bucket END) AS q50,
       MIN(CASE WHEN cum * 10 >= total * 7 THEN bucket END) AS q70,
       SUM(n * ((bucket - 128 * shift) * POWER(2, shift) + (POWER(2, shift) - 1) / 2)) / MAX(total) AS mean
FROM c GROUP BY peers, series_id, machine, day
