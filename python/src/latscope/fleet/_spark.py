"""Apache Spark as an engine. It needs Java 17 or newer; the extra `spark` installs it."""

import os

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from ._errors import FleetError
from ._lake import Snapshot
from ._schema import TABLES
from ._views import views

#: Parts of a logical plan that only read. All commands (INSERT, CREATE, SET …) are other ones.
_READING = {
    "Aggregate", "Distinct", "Except", "Filter", "GlobalLimit", "Intersect", "LocalLimit", "Offset",
    "Project",
    "Sort", "SubqueryAlias", "Union", "UnresolvedHaving", "UnresolvedWith", "WithWindowDefinition",
}  # fmt: skip

#: Functions that call any method of Java.
_CALLS = ("reflect", "java_method")

_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.runSQLOnFiles": "false",
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
        for name, text in views(snapshot).items():
            self.session.sql(text).createOrReplaceTempView(name)

    def query(self, sql: str) -> pa.Table:
        """Returns the rows of a query."""
        try:
            return self.session.sql(sql).toArrow()
        except PySparkException as error:
            raise FleetError(f"Spark refuses the query: {error!s:.500}") from None

    def check(self, sql: str) -> None:
        """Raises FleetError unless a text is one query that only reads."""
        try:
            parsed = self.session._jsparkSession.sessionState().sqlParser().parsePlan(sql)
        except PySparkException as error:
            raise FleetError(f"Spark refuses the query: {error!s:.500}") from None
        plans = [parsed]
        while plans and plans[-1].getClass().getSimpleName() == "UnresolvedWith":
            plans.append(plans[-1].child())
        kinds = {plan.getClass().getSimpleName() for plan in plans}
        if not kinds <= _READING or any(word in sql.lower() for word in _CALLS):
            raise FleetError("give one query that only reads: SELECT … or WITH … SELECT")

    def close(self) -> None:
        """Stops Spark with its processes."""
        self.session.stop()
