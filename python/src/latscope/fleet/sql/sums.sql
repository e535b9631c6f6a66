-- Points whose buckets do not add up to their count.
WITH t AS (
    SELECT run_id, series_id, CAST(SUM(n) AS BIGINT) AS total FROM h GROUP BY run_id, series_id
)
SELECT p.run_id, p.series_id, COALESCE(t.total, 0) AS total, p.count AS expected
FROM points p LEFT JOIN t ON t.run_id = p.run_id AND t.series_id = p.series_id
WHERE COALESCE(t.total, 0) <> p.count
ORDER BY p.run_id, p.series_id
LIMIT 100
