-- Median of each side's runs of a day (nearest rank), ns, of each series. A side is a machine or a group of machines.
WITH p AS (
    SELECT CAST(p.day AS STRING) AS day, CASE :by WHEN 'machine' THEN r.machine_id WHEN 'model' THEN r.cpu_model
           WHEN 'kernel' THEN CONCAT(r.cpu_model, ', ', r.kernel) ELSE COALESCE(r.labels[:label], '') END AS side,
           p.series_id, p.p50, p.run_id
    FROM points p JOIN runs r ON r.run_id = p.run_id WHERE p.p50 > 0
),
ranked AS (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY day, side, series_id ORDER BY p50, run_id) AS place,
           COUNT(*) OVER (PARTITION BY day, side, series_id) AS total
    FROM p
)
SELECT r.side, r.series_id, s.probe, s.title, r.day, MIN(CASE WHEN place * 2 >= total THEN p50 END) AS p50
FROM ranked r JOIN series s ON s.series_id = r.series_id
GROUP BY r.side, r.series_id, s.probe, s.title, r.day
ORDER BY r.side, r.series_id, r.day
