-- How the series of a probe are sampled.
SELECT DISTINCT sampling FROM series WHERE probe LIKE :probe ORDER BY sampling
