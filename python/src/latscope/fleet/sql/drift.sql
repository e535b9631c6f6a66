-- Median of each machine's runs of a day (nearest rank), ns, of each series.
WITH p AS (
    SELECT CAST(p.day AS STRING) AS day, p.machine_id, p.series_id, p.p50,
           ROW_NUMBER() OVER (PARTITION BY p.day, p.machine_id, p.series_id ORDER BY p.p50, p.run_id) AS place,
           COUNT(*) OVER (PARTITION BY p.day, p.machine_id, p.series_id) AS total
    FROM points p WHERE p.p50 > 0
)
SELECT p.machine_id, p.series_id, s.probe, s.title, p.day, MIN(CASE WHEN place * 2 >= total THEN p50 END) AS p50
FROM p JOIN series s ON s.series_id = p.series_id
GROUP BY p.machine_id, p.series_id, s.probe, s.title, p.day
ORDER BY p.machine_id, p.series_id, p.day
