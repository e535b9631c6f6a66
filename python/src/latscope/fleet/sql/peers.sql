-- Groups of peers, as sick.sql numbers them, with their machines.
SELECT peers, cpu_model, kernel, busy, COUNT(DISTINCT machine_id) AS machines, COUNT(*) AS runs
FROM (
    SELECT *, DENSE_RANK() OVER (ORDER BY cpu_model, kernel, busy) AS peers
    FROM (SELECT *, CASE WHEN COALESCE(others, 0) > 0.2 OR COALESCE(stolen, 0) > 0.05 OR COALESCE(throttled, 0) > 0.01 THEN 1 ELSE 0 END AS busy FROM runs) t
) u
GROUP BY peers, cpu_model, kernel, busy
ORDER BY peers
