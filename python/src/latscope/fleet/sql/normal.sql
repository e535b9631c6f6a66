-- Reference band of each series and processor: the 5th, 50th and 95th percentile (nearest rank) of the runs' medians, ns.
WITH p AS (
    SELECT r.cpu_model, p.series_id, r.machine_id, p.p50,
           ROW_NUMBER() OVER (PARTITION BY r.cpu_model, p.series_id ORDER BY p.p50, p.run_id) AS place,
           COUNT(*) OVER (PARTITION BY r.cpu_model, p.series_id) AS total
    FROM points p JOIN runs r ON r.run_id = p.run_id
    WHERE p.p50 IS NOT NULL AND p.level IN ('ok', 'unstable')
)
SELECT p.cpu_model, s.probe, s.title, p.series_id, COUNT(DISTINCT p.machine_id) AS machines, MAX(total) AS runs,
       MIN(CASE WHEN place * 20 >= total THEN p50 END) AS low,
       MIN(CASE WHEN place * 2 >= total THEN p50 END) AS middle,
       MIN(CASE WHEN place * 20 >= total * 19 THEN p50 END) AS high
FROM p JOIN series s ON s.series_id = p.series_id
GROUP BY p.cpu_model, s.probe, s.title, p.series_id
ORDER BY p.cpu_model, s.probe, p.series_id
