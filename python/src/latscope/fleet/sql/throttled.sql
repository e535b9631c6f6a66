-- Machines that their control group stopped in more than 1 % of the periods of a run, where it stops at most one in a
-- hundred machines with the same processor and kernel.
WITH m AS (
    SELECT cpu_model, kernel, machine_id, MAX(COALESCE(throttled, 0)) AS throttled
    FROM runs WHERE day >= CAST(:since AS DATE)
    GROUP BY cpu_model, kernel, machine_id
),
p AS (
    SELECT *, COUNT(*) OVER (PARTITION BY cpu_model, kernel) AS peers,
           CAST(SUM(CASE WHEN throttled > 0.01 THEN 1 ELSE 0 END) OVER (PARTITION BY cpu_model, kernel) AS BIGINT) AS many
    FROM m
)
SELECT machine_id, cpu_model, kernel, throttled, many, peers FROM p
WHERE throttled > 0.01 AND many * 100 <= peers ORDER BY machine_id, cpu_model, kernel
