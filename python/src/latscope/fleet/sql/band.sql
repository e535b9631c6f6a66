-- Band of each series on the other machines with a processor and kernel: the 50th and 95th percentile (nearest rank) of
-- the runs' medians, ns.
WITH p AS (
    SELECT p.series_id, r.machine_id, p.p50,
           ROW_NUMBER() OVER (PARTITION BY p.series_id ORDER BY p.p50, p.run_id) AS place,
           COUNT(*) OVER (PARTITION BY p.series_id) AS total
    FROM points p JOIN runs r ON r.run_id = p.run_id
    WHERE p.p50 IS NOT NULL AND p.level IN ('ok', 'unstable')
      AND r.cpu_model = :model AND r.kernel = :kernel AND r.machine_id <> :machine
)
SELECT series_id, COUNT(DISTINCT machine_id) AS machines,
       MIN(CASE WHEN place * 2 >= total THEN p50 END) AS middle,
       MIN(CASE WHEN place * 20 >= total * 19 THEN p50 END) AS high
FROM p
GROUP BY series_id
ORDER BY series_id
