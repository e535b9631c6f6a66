"""Apache Spark as an engine. It needs Java 17 or newer; the extra `spark` installs it."""

import os
import re
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from ._engine import MOST_ANSWER, lost_of, too_many
from ._errors import FleetError
from ._lake import Snapshot
from ._plan import refused
from ._schema import TABLES
from ._views import views

_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.runSQLOnFiles": "false",
    # `${env:NAME}` in a query would be a variable of the environment.
    "spark.sql.variable.substitute": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}


class Spark:
    """Spark on `master`: `local-cluster[2,1,1024]` is two processes with a core and 1024 MB each."""

    def __init__(self, snapshot: Snapshot, master: str) -> None:
        """Starts Spark and makes the views."""
        if "local" in master:
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = SparkSession.builder.master(master).appName("latscope-fleet")
        for name, value in _SETTINGS.items():
            if "local" in master or not name.startswith("spark.driver."):
                builder = builder.config(name, value)
        self.session = builder.getOrCreate()
        self.session.sparkContext.setLogLevel("ERROR")
        for name, schema in TABLES.items():
            fields = from_arrow_schema(schema)
            files = [file.uri for file in snapshot.files[name]]
            if files:
                reader = self.session.read.schema(fields).option("basePath", f"{snapshot.root}/{name}")
                frame = reader.parquet(*files)
            else:
                frame = self.session.createDataFrame([], fields)
            frame.createOrReplaceTempView(f"{name}_files")
        lost = lost_of(snapshot)
        self.session.createDataFrame(
            lost.to_pylist(), from_arrow_schema(lost.schema)
        ).createOrReplaceTempView("lost")
        for name, text in views(bool(snapshot.lost)).items():
            self.session.sql(text).createOrReplaceTempView(name)

    def answer(self, sql: str) -> pa.Table:
        """Returns the rows of a user's query."""
        try:
            table = self.session.sql(sql).limit(MOST_ANSWER + 1).toArrow()
        except PySparkException as error:
            raise FleetError(f"Spark refuses the query: {error!s:.500}") from None
        if table.num_rows > MOST_ANSWER:
            raise too_many()
        return table

    def query(self, sql: str, **words: Any) -> pa.Table:
        """Returns the rows of a query, in which `:word` stands for a value of `words`."""
        # Spark 4.3 puts values into the text, and this session reads its quotes otherwise: digits have none.
        for name, value in words.items():
            if isinstance(value, str):
                sql = re.sub(rf":{name}\b", f"DECODE(UNHEX(:{name}), 'UTF-8')", sql)
            elif isinstance(value, list):
                known = rf"FIND_IN_SET(LOWER(HEX(\1)), :{name}) > 0"
                sql = re.sub(rf"ARRAY_CONTAINS\(:{name}, (\w+)\)", known, sql)
        args = {name: _digits(value) for name, value in words.items()}
        try:
            return self.session.sql(sql, args=args).toArrow()
        except PySparkException as error:
            raise FleetError(f"Spark refuses the query: {error!s:.500}") from None

    def check(self, sql: str) -> None:
        """Raises FleetError unless a text is one query that only reads."""
        state = self.session._jsparkSession.sessionState()
        try:
            parsed = state.sqlParser().parsePlan(sql)
            # What is read by the analysis alone may be refused, too: a function that opens a file.
            odd = next(refused(parsed), None)
            if odd is None:
                planned = state.executePlan(parsed, getattr(state, "executePlan$default$2")())
                odd = next(refused(planned.analyzed()), None)
        except PySparkException as error:
            raise FleetError(f"Spark refuses the query: {error!s:.500}") from None
        if odd is not None:
            raise FleetError(
                "give one query that only reads, SELECT … or WITH … SELECT, of what docs/fleet.md lists: "
                f"not {odd}"
            )

    def close(self) -> None:
        """Stops Spark with its processes."""
        self.session.stop()


def _digits(value: Any) -> Any:
    if isinstance(value, list):
        return ",".join(_digits(one) for one in value)
    return value.encode().hex() if isinstance(value, str) else value
