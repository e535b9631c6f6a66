-- Headline series of each processor: the medians (nearest rank) of the runs' medians and 99th percentiles, ns.
WITH s AS (
    SELECT series_id, probe, title FROM series
    WHERE probe IN ('cpu.cycle', 'syscall.getppid', 'sync.mutex', 'sync.futex', 'file.fsync')
       OR (probe = 'thread.total' AND params['mode'] = 'warm')
       OR (probe = 'file.read' AND params['mode'] = 'kept-open')
       OR (probe = 'wake.timer' AND params['cpu'] = 'all')
       OR (probe = 'memory.latency' AND params['order'] = 'random' AND params['size'] = '134217728')
),
p AS (
    SELECT r.cpu_model, s.probe, s.title, s.series_id, p.p50, p.p99,
           ROW_NUMBER() OVER (PARTITION BY r.cpu_model, s.series_id ORDER BY p.p50 NULLS LAST, p.run_id) AS place50,
           ROW_NUMBER() OVER (PARTITION BY r.cpu_model, s.series_id ORDER BY p.p99 NULLS LAST, p.run_id) AS place99,
           COUNT(p.p50) OVER (PARTITION BY r.cpu_model, s.series_id) AS total50,
           COUNT(p.p99) OVER (PARTITION BY r.cpu_model, s.series_id) AS total99
    FROM points p JOIN s ON s.series_id = p.series_id JOIN runs r ON r.run_id = p.run_id
)
SELECT cpu_model, probe, title, series_id, MIN(CASE WHEN place50 * 2 >= total50 THEN p50 END) AS p50,
       MIN(CASE WHEN place99 * 2 >= total99 THEN p99 END) AS p99
FROM p
GROUP BY cpu_model, probe, title, series_id
ORDER BY cpu_model, probe, title, series_id
