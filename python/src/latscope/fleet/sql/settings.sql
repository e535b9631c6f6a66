-- Checks of doctor on each machine, the last run last.
SELECT machine_id, cpu_model, kernel, checks, affects FROM runs WHERE day >= CAST(:since AS DATE)
ORDER BY started, run_id
