-- Machines of a day, each with its last run there.
SELECT machine_id, name, cpu_model, kernel, run_id, CAST(started AS STRING) AS started, others, stolen, throttled, runs
FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY machine_id ORDER BY started DESC, run_id DESC) AS place,
           COUNT(*) OVER (PARTITION BY machine_id) AS runs
    FROM runs
) r
WHERE place = 1
ORDER BY machine_id
