"""Queries of users that Spark answers, and those that it does not: no process is started, no file is read."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake")
pytest.importorskip("duckdb")

from conftest import DATA
from fleet_help import add

from latscope.fleet import FleetError, Lake
from latscope.fleet._engine import engine

pytestmark = pytest.mark.spark

# ruff: noqa: E501

#: Queries that act, or read what is not in the lake. FILE is a file that they would make.
ACTING = (
    "SELECT * FROM (SELECT TRANSFORM(run_id) USING 'sh -c \"id > FILE; cat\"' AS (x STRING) FROM runs)",
    "WITH a AS (SELECT TRANSFORM(run_id) USING 'sh -c \"id > FILE; cat\"' AS (x STRING) FROM runs) SELECT * FROM a",
    "SELECT run_id FROM runs WHERE run_id IN (SELECT TRANSFORM(run_id) USING 'sh -c \"id > FILE; cat\"' AS (x STRING) "
    "FROM runs)",
    "SELECT EXISTS (SELECT TRANSFORM(run_id) USING 'touch FILE' AS (x STRING) FROM runs)",
    "FROM runs MAP run_id USING 'touch FILE' AS (x STRING)",
    "FROM (FROM runs SELECT run_id) a REDUCE a.run_id USING 'touch FILE' AS (x STRING)",
    "SELECT * FROM runs a JOIN LATERAL (SELECT TRANSFORM(a.run_id) USING 'touch FILE' AS (x STRING)) b",
    "SELECT IDENTIFIER('re' || 'flect')('java.lang.System', 'getenv', 'HOME')",
    "SELECT * FROM IDENTIFIER('ru' || 'ns')",
    "SELECT reflect('java.lang.System', 'getenv', 'HOME')",
    "SELECT java_method('java.lang.System', 'getenv', 'HOME')",
    "SELECT try_reflect('java.lang.System', 'getenv', 'HOME')",
    "SELECT `reflect`('java.lang.System', 'getenv', 'HOME')",
    "SELECT system.builtin.reflect('java.lang.System', 'getenv', 'HOME')",
    "SELECT max(reflect('java.lang.System', 'getenv', 'HOME')) OVER () FROM runs",
    "SELECT 1 FROM runs ORDER BY reflect('java.lang.System', 'getenv', 'HOME')",
    "SELECT 1 FROM runs GROUP BY reflect('java.lang.System', 'getenv', 'HOME')",
    "SELECT (SELECT reflect('java.lang.System', 'getenv', 'HOME'))",
    "SELECT sum(1) OVER w FROM runs WINDOW w AS (PARTITION BY reflect('java.lang.System', 'getenv', 'HOME'))",
    "SELECT * FROM VALUES (reflect('java.lang.System', 'getenv', 'HOME'))",
    "SELECT 1 LIMIT length(reflect('java.lang.System', 'getenv', 'HOME'))",
    "SELECT transform(array(1), x -> reflect('java.lang.System', 'getenv', 'HOME'))",
    "SELECT from_protobuf(binary('a'), 'A', '/etc/hostname')",
    "SELECT * FROM parquet.`/etc`",
    "SELECT * FROM text.`/etc/hostname`",
    "SELECT input_file_name() FROM runs",
    "SELECT * FROM range(10)",
    "SELECT * FROM python_data_source('x')",
    "EXECUTE IMMEDIATE 'SELECT 1'",
    "BEGIN SELECT 1; END",
    "DECLARE x INT",
    "FROM runs INSERT INTO a SELECT 1 INSERT INTO b SELECT 2",
    "WITH a AS (SELECT 1) INSERT INTO b SELECT * FROM a",
    "INSERT OVERWRITE DIRECTORY 'FILE' USING csv SELECT 1",
    "CREATE TEMPORARY FUNCTION x AS 'java.lang.System'",
    "CREATE TABLE x USING csv LOCATION 'FILE' AS SELECT 1",
    "CREATE TEMPORARY VIEW v AS SELECT 1",
    "ADD JAR '/tmp/x.jar'",
    "SET spark.sql.variable.substitute = true",
    "CACHE TABLE runs",
    "CALL system.x()",
    "SHOW TABLES",
    "DESCRIBE runs",
    "SELECT 1; SELECT 2",
)

#: Queries that are answered.
READING = (
    "SELECT COUNT(*) AS n FROM runs",
    "SELECT DISTINCT r.machine_id, labels['a'], params['b'] FROM runs r CROSS JOIN series WHERE name LIKE '%' LIMIT 3",
    "WITH a AS (SELECT machine_id, COUNT(*) AS n FROM points GROUP BY machine_id HAVING COUNT(*) > 0) "
    "SELECT * FROM a JOIN runs USING (machine_id) ORDER BY n DESC, 1",
    "SELECT title, p50, p99 FROM quantiles WHERE p50 IS NOT NULL AND probe IN ('cpu.cycle', 'wake.timer')",
    "SELECT probe, MAX(CASE WHEN p50 > 1e3 THEN p50 / 1000 ELSE -p50 END) FROM points JOIN series USING (series_id) "
    "GROUP BY probe UNION ALL SELECT 'a', 1.0",
    "SELECT machine_id, ROW_NUMBER() OVER (PARTITION BY day ORDER BY started) AS place, SUM(points) OVER (ORDER BY "
    "started ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM runs",
    "SELECT * FROM runs WHERE day BETWEEN DATE '2020-01-01' AND DATE '2030-01-01' AND NOT others > 2",
    "SELECT CAST(day AS STRING) AS day, upper(name) || 'a', coalesce(nullif(name, ''), 'b') FROM runs WHERE run_id = "
    "(SELECT MAX(run_id) FROM runs) OR EXISTS (SELECT 1 FROM points WHERE points.run_id = runs.run_id)",
    "SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY waited), median(waited), round(avg(waited), 3) FROM points",
    "SELECT name, value FROM runs LATERAL VIEW explode(labels) AS label, value",
    "SELECT '${env:HOME}' AS home",
)


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Spark with a lake of one run."""
    lake = Lake(tmp_path_factory.mktemp("spark") / "lake", create=True)
    add(lake, DATA / "wake.json.gz")
    with engine("spark", lake.snapshot(), "local[1]") as opened:
        yield opened


def test_a_query_that_acts_is_refused(spark: Any, tmp_path: Path) -> None:
    made, passed = tmp_path / "made", []
    for query in ACTING:
        try:
            spark.check(query.replace("FILE", str(made)))
            passed.append(query)
        except FleetError:
            pass
    assert passed == []
    assert not made.exists()


def test_a_query_that_reads_is_answered(spark: Any) -> None:
    refused = []
    for query in READING:
        try:
            spark.check(query)
            rows = spark.query(query).to_pylist()
        except FleetError as error:
            refused.append(f"{error} {query}")
    assert refused == [], "\n".join(refused)
    # A variable of the environment is not put in.
    assert rows == [{"home": "${env:HOME}"}]
