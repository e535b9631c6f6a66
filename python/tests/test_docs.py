"""The examples of the page run, and the page names what the package has."""

import re
import shutil
from pathlib import Path

import pytest
from conftest import DATA

import latscope

PAGE = Path(__file__).parents[2] / "docs" / "python.md"


def test_the_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "results").mkdir()
    for name in ("survey-a", "survey-b"):
        shutil.copy(DATA / f"{name}.json.gz", tmp_path / "results")
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(examples) == 2
    names: dict[str, object] = {}
    for example in examples:
        exec(example, names)


def test_the_page_names_every_error_and_column() -> None:
    text = PAGE.read_text()
    errors = [name for name in latscope.__all__ if name.endswith("Error") and name != "Error"]
    table = latscope.read(DATA / "survey-a.json.gz")
    usual = [name for name in table.points().columns if "." not in name]
    # The page has the first and the last of the quantiles.
    named = [name for name in usual if not re.fullmatch(r"p\d+(_\d+)?", name)]
    assert [name for name in errors + named if f"`{name}`" not in text] == []
