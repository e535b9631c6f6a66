-- Median of a series by day, ns: the 5th, 50th and 95th percentile (nearest rank) of all runs, and the longest of one
-- machine's runs.
WITH p AS (
    SELECT CAST(day AS STRING) AS day, machine_id, p50,
           ROW_NUMBER() OVER (PARTITION BY day ORDER BY p50, run_id) AS place, COUNT(*) OVER (PARTITION BY day) AS total
    FROM points WHERE series_id = :series AND p50 IS NOT NULL
)
SELECT day, MIN(CASE WHEN place * 20 >= total THEN p50 END) AS low,
       MIN(CASE WHEN place * 2 >= total THEN p50 END) AS middle,
       MIN(CASE WHEN place * 20 >= total * 19 THEN p50 END) AS high,
       MAX(CASE WHEN machine_id = :machine THEN p50 END) AS own
FROM p GROUP BY day ORDER BY day
