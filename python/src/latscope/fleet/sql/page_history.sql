-- Runs of a machine, the last first.
SELECT *, CAST(day AS STRING) AS date, CAST(started AS STRING) AS start
FROM runs WHERE machine_id = :machine
ORDER BY day DESC, started DESC, run_id
