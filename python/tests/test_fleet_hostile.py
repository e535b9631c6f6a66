"""A lake and results whose every text is hostile, through the questions, views, writers and engines."""

import ast
import contextlib
import io
import json
import re
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake")
pytest.importorskip("duckdb")
pytest.importorskip("starlette")

import duckdb
import pyarrow.parquet as pq
from hostile_help import HOSTILE, document, foreign, harm
from test_fleet_serve import get, links, serving

import latscope
from latscope._clean import cell, clean, json_of, one_line
from latscope.fleet import Lake, _engine, _lake, _main
from latscope.fleet._compact import verify
from latscope.fleet._schema import TABLES
from latscope.fleet._serve import Site
from latscope.fleet._views import views

SOURCE = Path(latscope.__file__).parent

#: Questions with what they are asked by.
QUESTIONS = (
    ["sick"], ["normal"], ["worst"], ["missing", "--days", "0"], ["tables"], ["drift", "--least", "0"],
    ["drift", "--by", "model"], ["drift", "--by", "kernel"],
    *(["compare", "--by", by] for by in ("kernel", "model", "architecture", "microcode")),
    *(["sql", f"SELECT * FROM {name}"] for name in (*TABLES, *views(False))),
)  # fmt: skip

#: Questions about a text, TEXT.
OF_TEXT = (
    ["compare", "--by=label=TEXT"], ["drift", "--by=label=TEXT"], ["machine", "--probe=%", "--", "TEXT"],
    ["machine", "--probe=TEXT", "--", "none"], ["worst", "--probe=TEXT"],
)  # fmt: skip

#: Commands that print no rows.
PLAIN = (["normal", "--toml"], ["verify"], ["metrics"], ["vacuum", "--dry-run"], ["compact"], ["sick"])

FORMS = ("table", "csv", "json", "parquet")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """File that nothing may make."""
    return tmp_path_factory.mktemp("made") / "file"


@pytest.fixture(scope="module")
def texts(made: Path) -> list[str]:
    """Hostile texts."""
    return [text.replace("FILE", str(made)) for text in HOSTILE]


@pytest.fixture(scope="module")
def hostile(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Lake that another program wrote."""
    return foreign(tmp_path_factory.mktemp("hostile") / "lake", texts)


_CONNECT = duckdb.connect


class Recording:
    """Connection of DuckDB that keeps the texts that it is given."""

    def __init__(self, inner: Any, texts: list[str]) -> None:
        self.inner, self.texts = inner, texts

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if name not in ("execute", "sql"):
            return found

        def recorded(text: str, *others: Any, **named: Any) -> Any:
            self.texts.append(text)
            return found(text, *others, **named)

        return recorded


def _recording(texts: list[str], *words: Any, **named: Any) -> Recording:
    return Recording(_CONNECT(*words, **named), texts)


def called(*words: str) -> tuple[int, str, str]:
    out, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
        code = _main.main(words)
    return code, out.getvalue(), said.getvalue()


def check(words: list[str], lake: Lake, form: str, file: Path, *more: str) -> None:
    """Checks what a question prints in a form, or writes to a file."""
    to = ["--lake", lake.root, "--format", form, *more]
    if form == "parquet":
        to += ["--output", str(file)]
    code, out, said = called(words[0], *to, *words[1:])
    assert (harm(out, form if out else "table"), harm(said)) == ([], []), words
    assert code == 0 or said.startswith("latscope-fleet: "), (words, said)
    if form == "parquet" and code == 0:
        assert pq.read_table(file).num_rows >= 0


@pytest.mark.parametrize("form", FORMS)
def test_no_question_obeys_a_text_of_a_lake(
    hostile: Lake, texts: list[str], made: Path, form: str, tmp_path: Path
) -> None:
    for words in QUESTIONS:
        check(words, hostile, form, tmp_path / "answer")
    # Each text once: all questions about a text with those that SQL would obey.
    asked = [(words, text) for words in OF_TEXT for text in texts[:4]]
    asked += [(["machine", "--", "TEXT"], text) for text in texts]
    for words, text in asked if form == "table" else asked[:: len(texts)]:
        check([word.replace("TEXT", text) for word in words], hostile, form, tmp_path / "answer")
    assert not made.exists()


def test_no_command_obeys_a_text_of_a_lake(hostile: Lake, made: Path) -> None:
    for words in PLAIN:
        _, out, said = called(words[0], "--lake", hostile.root, *words[1:])
        assert (harm(out), harm(said)) == ([], []), words
    assert not made.exists()


@pytest.mark.spark
def test_spark_obeys_no_text_of_a_lake(
    texts: list[str], made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = foreign(tmp_path / "lake", texts, 1)
    with _engine.engine("spark", lake.snapshot(), "local[1]") as spark:
        monkeypatch.setattr(_main, "engine", lambda *_: contextlib.nullcontext(spark))
        for words in QUESTIONS:
            check(words, lake, "csv", made, "--engine", "spark")
        for text in texts:
            rows = spark.query(_engine.question("machine_runs"), machine=text).to_pylist()
            assert {row["name"] for row in rows} == {text}
    assert not made.exists()


def test_a_run_that_no_ingestion_names_so_is_refused(tmp_path: Path, texts: list[str], made: Path) -> None:
    lake = foreign(tmp_path / "lake", ["a"], 1, run=texts[0])
    for words in (["sick"], ["sql", "SELECT 1"], ["metrics"]):
        code, out, said = called(words[0], "--lake", lake.root, *words[1:])
        assert (code, out) == (1, "")
        assert "a run that no ingestion wrote" in said
    assert not made.exists()


def test_the_text_of_a_statement_has_no_value_of_a_lake(
    hostile: Lake, texts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A run_id with SQL in it would be refused before.
    monkeypatch.setattr(_lake, "RUN_ID", re.compile("(?s).*"))
    wild = foreign(tmp_path / "wild", texts[:4], run=texts[0])
    tame = foreign(tmp_path / "tame", ["a", "b", "c", "d"])
    said = dict[str, list[str]]()
    for lake, text in ((wild, texts[1]), (tame, "b")):
        recorded = said.setdefault(lake.root, [])
        connect = partial(_recording, recorded)
        monkeypatch.setattr(duckdb, "connect", connect)
        for words in (*QUESTIONS, *([word.replace("TEXT", text) for word in words] for words in OF_TEXT)):
            called(words[0], "--lake", lake.root, *words[1:])
    assert set(said[wild.root]) == set(said[tame.root])
    assert len(set(said[wild.root])) > 20


def test_results_with_hostile_texts_are_rows(
    lake: Lake, texts: list[str], tmp_path: Path, made: Path
) -> None:
    for number, text in enumerate(texts):
        own = document(text) | {"run_id": f"r{number}"}
        (tmp_path / f"{number}.json").write_text(json.dumps(own))
        # One that is no result, of whose reason the text is a part.
        (tmp_path / f"bad{number}.json").write_text(json.dumps(own | {"run_id": text, "schema": text}))
    code, out, said = called(
        "ingest", "--lake", lake.root, "--processes", "1", *map(str, tmp_path.glob("*.json"))
    )
    assert code == 2
    assert out.startswith(f"{len(texts)} runs added, 0 were there, {len(texts)} files set aside")
    assert harm(said) == []
    for words in QUESTIONS:
        check(words, lake, "csv", tmp_path / "answer")
    assert verify(lake) == []
    assert not made.exists()


def test_no_page_has_a_script_of_a_lake(hostile: Lake) -> None:
    with serving(Site(hostile, "127.0.0.1:0", None)) as site:
        todo, seen = ["/"], dict[str, int]()
        while todo and len(seen) < 60:
            path = todo.pop(0)
            if path in seen or sum(one.split("?")[0] == path.split("?")[0] for one in seen) >= 12:
                continue
            answer, text = get(site, path)
            seen[path] = answer.status
            if "html" in (answer.getheader("content-type") or ""):
                assert "<script>alert" not in text
                assert "<img src=x" not in text
                todo += links(text)
        assert {status for status in seen.values() if status >= 500} <= {503}
        assert len(seen) > 20


def test_what_is_printed_is_clean(texts: list[str]) -> None:
    for text in (*texts, *(f"a\n \t{text}" for text in texts)):
        assert harm(clean(text)) == []
        assert harm(one_line(text)) == harm(cell(text)) == []
        assert clean(clean(text)) == clean(text)
        assert json.loads(json_of({text: text})) == {text: text}
        assert harm(json_of({text: text})) == []
    assert [cell(text) for text in ("-5.25", "+3", "a=b", "", "-2+3", "=1")] == [
        "-5.25",
        "+3",
        "a=b",
        "",
        "'-2+3",
        "'=1",
    ]
    assert clean("µs → ok\n\ta::b\n") == "µs → ok\n\ta::b\n"


#: Methods that run a text, and calls that make a text of parts.
_RUNNING = {"execute", "executemany", "executescript", "query", "sql", "parsePlan", "extract_statements"}
_MAKING = {"format", "format_map", "replace", "join", "substitute"}


def composed(node: ast.expr, names: dict[str, list[ast.expr]]) -> bool:
    """Returns true if a text is put together where it is run, or in the function around it."""
    if isinstance(node, ast.Name):
        return any(composed(one, {}) for one in names.get(node.id, []))
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr in _MAKING
    return isinstance(node, ast.JoinedStr | ast.BinOp)


def composed_in(text: str) -> list[int]:
    """Returns the lines of a source on which a text that is put together is run."""
    found = []
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef | ast.Module):
            continue
        names: dict[str, list[ast.expr]] = {}
        for one in ast.walk(function):
            if isinstance(one, ast.Assign) and isinstance(function, ast.FunctionDef):
                for target in one.targets:
                    if isinstance(target, ast.Name):
                        names.setdefault(target.id, []).append(one.value)
        found += [
            one.lineno
            for one in ast.walk(function)
            if isinstance(one, ast.Call)
            and isinstance(one.func, ast.Attribute)
            and one.func.attr in _RUNNING
            and one.args
            and composed(one.args[0], names)
        ]
    return sorted(set(found))


def test_no_text_that_is_run_is_put_together() -> None:
    wrong = """
def a(c, x):
    c.execute(f"SELECT {x}")
    c.sql("SELECT " + x)
    c.query(question("a").replace(":x", x))
    text = "SELECT {}".format(x)
    c.execute(text)
    c.execute("SELECT %s" % x)
"""
    assert composed_in(wrong) == [3, 4, 5, 7, 8]
    found = {path.name: composed_in(path.read_text()) for path in SOURCE.rglob("*.py")}
    assert {name: lines for name, lines in found.items() if lines} == {}
    assert len(found) > 30


def test_what_the_fleet_prints_goes_through_the_filter() -> None:
    printing = re.compile(r"^.*\b(?:print\(|(?:stdout|stderr)\.write).*$", re.MULTILINE)
    found = chain.from_iterable(
        printing.findall(path.read_text()) for path in (SOURCE / "fleet").glob("*.py")
    )
    allowed = ("text_of(", "toml_of(", "clean(", '"ready"', "print(\n", "print(file=")
    assert [
        line for line in found if not any(word in line for word in allowed) and line.strip() != "print("
    ] == []
