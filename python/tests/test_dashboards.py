"""The dashboards of deploy/grafana: the parser of Prometheus takes their queries, and panels are complete."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

GRAFANA = Path(__file__).parents[2] / "deploy" / "grafana"
NAMES = ["fleet", "latscope"]

#: What Grafana writes in place of its own variables.
VARIABLES = {"$__rate_interval": "5m", "$__interval": "5m", "$__range": "1h"}


@pytest.fixture(params=NAMES)
def dashboard(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GRAFANA / f"{request.param}.json").read_text())
    return found


def queries(dashboard: dict[str, Any]) -> Iterator[str]:
    """Yields the queries of all panels and variables, as they are asked with all values chosen."""
    own = [one for one in dashboard["templating"]["list"] if one["type"] == "query"]
    texts = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    listed = [one["query"] if isinstance(one["query"], str) else one["query"]["query"] for one in own]
    texts += [re.sub(r"label_values\((.*), *\w+\)", r"\1", text) for text in listed]
    known = VARIABLES | {f"${one['name']}": ".*" for one in own}
    for text in texts:
        yield re.sub(r"\$\w+", lambda found: known[found[0]], text)


def refused(texts: list[str], directory: Path) -> str:
    """Returns what Prometheus says against queries."""
    rules = [{"record": f"query:{number}", "expr": text} for number, text in enumerate(texts)]
    path = directory / "rules.json"
    path.write_text(json.dumps({"groups": [{"name": "queries", "rules": rules}]}))
    done = subprocess.run(["promtool", "check", "rules", path], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_prometheus_takes_every_query(dashboard: dict[str, Any], tmp_path: Path) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is missing: Debian's package prometheus")
    found = list(queries(dashboard))
    assert len(found) >= 8
    assert refused(found, tmp_path) == ""
    assert not any("$" in text for text in found)
    for number, text in enumerate(found):
        broken = [*found[:number], text + " +", *found[number + 1 :]]
        assert "could not parse expression" in refused(broken, tmp_path)


def test_panels_have_what_grafana_needs(dashboard: dict[str, Any]) -> None:
    panels = dashboard["panels"]
    (source,) = (one["name"] for one in dashboard["templating"]["list"] if one["type"] == "datasource")
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert max(x for x, _ in cells) < 24
        assert not taken & cells
        taken |= cells
        assert panel["datasource"] == {"type": "prometheus", "uid": f"${{{source}}}"}
        letters = [target["refId"] for target in panel["targets"]]
        assert len(set(letters)) == len(letters)
    assert re.fullmatch(r"[\w-]{1,40}", dashboard["uid"])
