-- Groups of peers with their machines.
SELECT peers, cpu_model, kernel, busy, COUNT(DISTINCT machine_id) AS machines, COUNT(*) AS runs
FROM peers WHERE day >= CAST(:since AS DATE)
GROUP BY peers, cpu_model, kernel, busy ORDER BY peers
