-- All machines, with their last name, their days and the number of their runs.
SELECT machine_id, MAX(name) AS name, CAST(MIN(day) AS STRING) AS first, CAST(MAX(day) AS STRING) AS last,
       COUNT(*) AS runs
FROM runs GROUP BY machine_id
ORDER BY machine_id
