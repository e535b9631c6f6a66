-- Figures of a series, ns, of the last run of each machine; of all machines, or of those with one processor and kernel.
SELECT machine_id, name, run_id, samples, p50, p99, max, level
FROM (
    SELECT p.machine_id, r.name, p.run_id, p.count AS samples, p.p50, p.p99, p.max * s.tick_ps / 1000 AS max, p.level,
           ROW_NUMBER() OVER (PARTITION BY p.machine_id ORDER BY r.started DESC, p.run_id DESC) AS place
    FROM points p JOIN runs r ON r.run_id = p.run_id JOIN series s ON s.series_id = p.series_id
    WHERE p.series_id = :series AND (:model = '' OR (r.cpu_model = :model AND r.kernel = :kernel))
) t
WHERE place = 1
ORDER BY p50 DESC, machine_id
