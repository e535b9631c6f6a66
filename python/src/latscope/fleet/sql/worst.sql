-- Machines with the longest single values of a probe, ns.
SELECT p.machine_id, r.name, r.cpu_model, s.probe, s.title, p.series_id, CAST(p.day AS STRING) AS day,
       p.max * s.tick_ps / 1000 AS max, p.p99, p.p50, p.count AS samples
FROM points p JOIN series s ON s.series_id = p.series_id JOIN runs r ON r.run_id = p.run_id
WHERE s.probe LIKE :probe AND p.count > 0 AND s.sampling = 'event'
ORDER BY p.max * s.tick_ps DESC, p.machine_id, p.series_id, p.run_id
LIMIT :top
