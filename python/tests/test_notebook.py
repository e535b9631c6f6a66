"""The notebook runs from its first cell to its last."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

PYTHON = Path(__file__).parent.parent


@pytest.mark.usefixtures("command")
def test_the_notebook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(PYTHON / "src"))
    notebook = nbformat.read(PYTHON / "notebooks" / "first.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells)
    resources = {"metadata": {"path": str(PYTHON / "notebooks")}}
    NotebookClient(notebook, timeout=50, kernel_name="python3", resources=resources).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("srcdoc" in output.get("data", {}).get("text/html", "") for output in shown)
