-- Figures of a machine's series over time, ns.
SELECT CAST(p.day AS STRING) AS day, s.probe, s.title, p.series_id, p.count, p.p10, p.p50, p.p90, p.p99, p.p99_9,
       p.max * s.tick_ps / 1000 AS max, p.level, p.run_id
FROM points p JOIN series s ON s.series_id = p.series_id
WHERE p.machine_id = :machine AND s.probe LIKE :probe
ORDER BY s.probe, p.series_id, p.day, p.run_id
