-- Samples of a series by bucket: of one machine, and of all machines, or of those with one processor and kernel.
SELECT h.bucket, CAST(SUM(CASE WHEN h.machine_id = :machine THEN h.n ELSE 0 END) AS BIGINT) AS own,
       CAST(SUM(h.n) AS BIGINT) AS total
FROM h JOIN runs r ON r.run_id = h.run_id
WHERE h.series_id = :series AND (:model = '' OR (r.cpu_model = :model AND r.kernel = :kernel))
GROUP BY h.bucket
ORDER BY h.bucket
