-- Ids that several machines share (cloned disks have one machine-id): other names, processors or memory on one day.
SELECT machine_id, CAST(day AS STRING) AS day, COUNT(DISTINCT name) AS names, MIN(name) AS one, MAX(name) AS other
FROM runs WHERE day >= CAST(:since AS DATE)
GROUP BY machine_id, day
HAVING COUNT(DISTINCT name) > 1 OR COUNT(DISTINCT cpu_model) > 1 OR COUNT(DISTINCT memory) > 1
ORDER BY machine_id, day
