-- Series of a day, with the 5th, 50th and 95th percentile (nearest rank) of the runs' medians, ns.
WITH p AS (
    SELECT series_id, machine_id, p50, ROW_NUMBER() OVER (PARTITION BY series_id ORDER BY p50, run_id) AS place,
           COUNT(*) OVER (PARTITION BY series_id) AS total
    FROM points WHERE p50 IS NOT NULL
)
SELECT s.series_id, s.probe, s.title, s.tick_ps, s.sampling, COUNT(DISTINCT p.machine_id) AS machines,
       MIN(CASE WHEN place * 20 >= total THEN p50 END) AS low,
       MIN(CASE WHEN place * 2 >= total THEN p50 END) AS middle,
       MIN(CASE WHEN place * 20 >= total * 19 THEN p50 END) AS high
FROM p JOIN series s ON s.series_id = p.series_id
GROUP BY s.series_id, s.probe, s.title, s.tick_ps, s.sampling
ORDER BY s.probe, s.title, s.series_id
