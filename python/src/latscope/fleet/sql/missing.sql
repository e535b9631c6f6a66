-- Machines that reported before a day and not since.
SELECT machine_id, MAX(name) AS name, CAST(MIN(day) AS STRING) AS first, CAST(MAX(day) AS STRING) AS last,
       COUNT(*) AS runs
FROM runs GROUP BY machine_id
HAVING CAST(MAX(day) AS STRING) < :since
ORDER BY last, machine_id
