-- What may change with the figures of all sides, of each of their runs in order of time.
SELECT side, CAST(day AS STRING) AS day, cpu_model, kernel, kernel_version, command_line, microcode, scheduler,
       hypervisor, CAST(memory AS STRING) AS memory, topology, tool, tool_commit, checks, source
FROM (
    SELECT r.*, CASE :by WHEN 'machine' THEN r.machine_id WHEN 'model' THEN r.cpu_model
           WHEN 'kernel' THEN CONCAT(r.cpu_model, ', ', r.kernel) ELSE COALESCE(r.labels[:label], '') END AS side
    FROM runs r
) t
ORDER BY side, started, run_id
