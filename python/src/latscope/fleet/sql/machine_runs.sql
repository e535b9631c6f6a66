-- Runs of a machine in order of time.
SELECT CAST(day AS STRING) AS day, run_id, name, cpu_model, kernel, microcode, tool, others, stolen, throttled, points,
       source
FROM runs WHERE machine_id = :machine ORDER BY started, run_id
