-- Points of a run, with their series.
SELECT p.*, s.probe, s.title, s.identity, s.batch_ns, s.tick_ps, s.value_units
FROM points p JOIN series s ON s.series_id = p.series_id
WHERE p.run_id = :run
ORDER BY s.probe, s.title, p.series_id
