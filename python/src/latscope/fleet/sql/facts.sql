-- What may change with the figures of some sides, of each of their runs in order of time.
SELECT side, CAST(day AS STRING) AS day, kernel, kernel_version, command_line, microcode, scheduler, hypervisor,
       CAST(memory AS STRING) AS memory, topology, tool, tool_commit, checks, source
FROM (SELECT r.*, :side AS side FROM runs r) t
WHERE side IN (:sides)
ORDER BY side, started, run_id
