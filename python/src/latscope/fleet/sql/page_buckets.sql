-- Buckets of a run.
SELECT series_id, bucket, n FROM h WHERE run_id = :run ORDER BY series_id, bucket
