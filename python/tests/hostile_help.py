"""Lakes and results whose every text is hostile, and what no output may have of them. Import it after
`pytest.importorskip`."""

import csv
import gzip
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from conftest import DATA

from latscope.fleet import Lake
from latscope.fleet._lake import new_batch
from latscope.fleet._rows import rows_of
from latscope.fleet._schema import KEYS, TABLES

#: Texts that a shell, SQL, a terminal, the log of a workflow, a page, a spreadsheet or a path would obey.
#: FILE is a file that they would make.
HOSTILE = (
    "x', 1)) AS t(run_id, batch); COPY (SELECT 'pwned' AS a) TO 'FILE'; SELECT * FROM (VALUES ('y",
    "'; DROP TABLE h; --",
    "\" OR 1 = 1; ATTACH 'FILE' AS \"b",
    "$machine :side :by :label \\' ? {x} %s",
    "\x1b]0;PWNED\x07\x1b[2J\x9b31m",
    "\u202etxt.exe\u2066\u2028\u2029\u200f",
    "::stop-commands::x",
    "\r\n::add-mask::x\n ::set-output name=a::b",
    "##vso[task.setvariable variable=a]b",
    "##[error]x",
    "<LAVA_SIGNAL_TESTCASE TEST_CASE_ID=a RESULT=pass>",
    "<script>alert(1)</script><img src=x onerror='alert(2)'>",
    '=HYPERLINK("http://x")',
    "+1+cmd|' /C calc'!A0",
    "@SUM(A1)",
    "-2+3",
    "\t=1+1",
    "../../../../etc/passwd",
    "$(id > FILE)`id`",
    "a[$(id > FILE)]",
    "{{7*7}}${{x}}",
    "\x7f\ufeff\u0301\U000e0041" + "A" * 5000,
)

#: Machines that a question needs to judge.
PEERS = 110


def document(text: str) -> dict[str, Any]:
    """Returns a valid result whose every text that is free is a hostile one."""
    made: dict[str, Any] = json.loads(gzip.decompress((DATA / "wake.json.gz").read_bytes()))
    made["labels"] = {text: text}
    texts = ("name", "id", "kernel", "kernel_version", "architecture", "command_line", "cpu_model")
    made["machine"] |= dict.fromkeys((*texts, "microcode", "hypervisor", "scheduler"), text)
    made["tool"] |= {"version": text, "commit": text}
    for point in made["measurements"]:
        point["title"] = text
        point["params"] |= {text: text}
        for value in (point.get("values") or {}).values():
            value["unit"] = text
    return made


def foreign(root: Path, texts: Sequence[str], days: int = 7, run: str = "run") -> Lake:
    """Returns a lake that another program wrote, of whose texts none went through an ingestion: a machine has
    one of them in all of its columns. Each run is there in two batches, so that one copy does not count.

    The first texts' machines are slower from the fourth day on."""
    lake, source = Lake(root, create=True), document("")
    free = [one.name for one in TABLES["runs"] if one.type == pa.string() and one.name not in KEYS]
    for number in range(days):
        source["started"] = source["finished"] = f"2026-11-{10 + number}T01:00:00.000Z"
        rows = rows_of(source, b"", "source")
        runs = []
        for place, text in enumerate(texts):
            own = dict.fromkeys(free, text) | {"run_id": f"{run}{place}.{number}", "machine_id": text}
            maps = {name: {text: text} for name in ("labels", "checks", "affects")}
            runs.append(rows.run | own | maps | {"batch": new_batch()})
        for batch in (new_batch(), new_batch()):
            copies = [one | {"batch": batch} for one in runs]
            for name in ("points", "h"):
                parts = [_part(name, getattr(rows, name), one, 2 if number > 3 else 1) for one in copies]
                lake.append(name, pa.concat_tables(parts))
            lake.append("runs", pa.Table.from_pylist(copies, schema=TABLES["runs"]))
    lake.append("series", pa.Table.from_pylist(list(_series(rows.series, texts)), schema=TABLES["series"]))
    return lake


def _part(name: str, rows: pa.Table, run: dict[str, Any], factor: int) -> pa.Table:
    text = run["machine_id"]
    columns: dict[str, Any] = {one: [run[one]] * rows.num_rows for one in KEYS}
    columns |= {one: rows[one] for one in rows.column_names}
    if name == "points":
        columns |= dict.fromkeys(("reasons", "verdict"), [text] * rows.num_rows)
        columns |= {"quantities": [{text: 1.0}] * rows.num_rows}
        columns |= {"p50": [None if one is None else one * factor for one in rows["p50"].to_pylist()]}
    return pa.table(
        [pa.array(columns[one.name], one.type) if isinstance(columns[one.name], list) else columns[one.name]
         for one in TABLES[name]],
        schema=TABLES[name],
    )  # fmt: skip


def _series(rows: Sequence[dict[str, Any]], texts: Sequence[str]) -> Any:
    for place, row in enumerate(rows):
        text = texts[place % len(texts)]
        wild = {"title": text, "unit": text, "program": text, "times": text, "params": {text: text}}
        # The probe stays where a question asks for it.
        yield row | wild | {"value_units": {text: text}} | ({"probe": text} if place % 2 else {})


def harm(text: str, form: str = "table") -> list[str]:
    """Returns what a terminal, the log of a workflow or of a test, or a spreadsheet would obey in a text."""
    found = [f"U+{ord(one):04X}" for one in text if not one.isprintable() and one not in "\n\t"]
    lines = text.split("\n")
    found += [line for line in lines if line.lstrip().startswith("::")]
    found += [sign for sign in ("##[", "##vso[", "<LAVA_SIGNAL_") if sign.lower() in text.lower()]
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row] if form == "csv" else []
    found += [
        one for one in cells if one.startswith(("=", "+", "-", "@", "\t", "\r")) and not _is_number(one)
    ]
    if form == "json":
        json.loads(text)
    return found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
