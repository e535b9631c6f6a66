-- Of each machine: in which share of the time threads that measured waited for a CPU, as quartiles of its points.
SELECT r.machine, PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY p.waited) AS w50,
       PERCENTILE_DISC(0.75) WITHIN GROUP (ORDER BY p.waited) AS w75
FROM points p JOIN peers r ON r.run_id = p.run_id
WHERE p.waited IS NOT NULL AND r.day >= CAST(:since AS DATE)
GROUP BY r.machine ORDER BY r.machine
