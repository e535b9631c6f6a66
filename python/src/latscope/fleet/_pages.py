"""The pages of `latscope-fleet serve`."""

import math
from collections.abc import Awaitable, Callable
from datetime import date
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from .._errors import CommandError, Error
from . import _plots, _report
from ._lake import Lake
from ._metrics import CONTENT_TYPE, metrics
from ._series import BUCKETS
from ._table import Row, heat, link, ratio_text, table, time_text
from ._web import Fleet, Judged

#: States of machines, in the order of the overview.
_STATES = {"sick": 0, "muted": 1, "not judged": 2, "ok": 3}

#: Rules for the report, a page of its own: it has styles and a script in itself, and reads nothing from here.
_OF_REPORT = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; sandbox allow-scripts"
)

Answer = Callable[[Request], Response]


def pages(lake: Lake, results: Path | None = None) -> Starlette:
    """Returns the application. `results` is the directory with the files that were ingested, if it is
    there."""
    site = Pages(Fleet(lake), results)
    answers: dict[str, Answer] = {
        "/": site.overview,
        "/machine": site.machine,
        "/series": site.series,
        "/run": site.run,
        "/report": site.report,
        "/metrics": site.metrics,
        "/plot/families.svg": site.kept(site.families_plot),
        "/plot/machines.svg": site.kept(site.machines_plot),
        "/plot/samples.svg": site.kept(site.samples_plot),
        "/plot/trend.svg": site.kept(site.trend_plot),
    }
    routes = [Route(path, _answering(answer)) for path, answer in answers.items()]
    static = StaticFiles(directory=Path(__file__).parent / "static")
    failures: dict[Any, Any] = dict.fromkeys((HTTPException, Error, ValueError), site.failure)
    return Starlette(routes=[*routes, Mount("/static", static)], exception_handlers=failures)


def _answering(answer: Answer) -> Callable[[Request], Awaitable[Response]]:
    async def answering(request: Request) -> Response:
        return await run_in_threadpool(answer, request)

    return answering


class Pages:
    """Pages of a fleet."""

    def __init__(self, fleet: Fleet, results: Path | None) -> None:
        self.fleet, self.results = fleet, results
        self.templates = Environment(
            loader=PackageLoader("latscope.fleet"), autoescape=True, undefined=StrictUndefined,
            trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        self.templates.filters |= {"time": time_text, "heat": heat, "ratio": ratio_text}
        self.templates.globals |= {"link": link}

    def overview(self, request: Request) -> Response:
        """Returns the machines and families of a day, the sick ones on top."""
        words = request.query_params
        if not self.fleet.days():
            return self._page(request, "empty.html", None, {})
        day = self._day(request)
        judged, missing = self.fleet.judge(day), self.fleet.missing(day)
        rows = [self._machine_row(row, judged) for row in self.fleet.of_day("page_machines", day)]
        searched = ("machine_id", "name", "cpu_model", "kernel", "state")
        counts = {"machines": len(rows), "runs": sum(row["runs"] for row in rows)}
        counts |= {"sick": len(judged.sick), "missing": len(missing)}
        about = {"counts": counts, "judged": judged, "missing": missing}
        shown = table(words, rows, searched, "state", _of_machine)
        return self._page(request, "overview.html", day, about | shown)

    def _machine_row(self, row: Row, judged: Judged) -> Row:
        machine = row["machine_id"]
        sick = judged.sick.get(machine) or judged.muted.get(machine)
        state = "ok" if machine in judged.places else "not judged"
        if sick:
            state = "muted" if sick["muted"] else "sick"
        return row | {"state": state, "sick": sick, "families": judged.families_of(machine)}

    def machine(self, request: Request) -> Response:
        """Returns the page of a machine: how it differs from its peers, its series, its runs."""
        day, machine, words = self._day(request), _word(request, "id"), request.query_params
        runs = self.fleet.before("page_history", day, machine=machine)
        if not runs:
            raise HTTPException(404, f"There is no machine {machine} in the 90 days up to {day}.")
        judged = self.fleet.judge(day)
        place, _ = judged.places.get(machine, (None, None))
        run = next((run for run in runs if run["date"] == day.isoformat()), runs[0])
        about = {
            "machine": machine,
            "run": run,
            "runs": runs,
            "sick": judged.sick.get(machine) or judged.muted.get(machine),
            "suspected": judged.suspected.get(machine),
            "families": judged.families_of(machine),
            "group": None if place is None else judged.groups[place],
        }
        shown = table(words, self._series_of(machine, judged), ("probe", "title"), "score")
        return self._page(request, "machine.html", day, about | shown)

    def _series_of(self, machine: str, judged: Judged) -> list[Row]:
        """Returns the series of a machine, with its ratios to the peers: of durations, and of the number of
        slow samples."""
        if machine not in judged.places:
            return []
        place, row = judged.places[machine]
        found, score = judged.groups[place].found, judged.score[place][row]
        columns = zip(found.series, found.body[row], score, found.mean[row], strict=True)
        return [
            judged.series[one]
            | {
                "ratio": math.exp(body),
                "score": float(far),
                "mean": None if math.isnan(mean) else math.exp(mean),
            }
            for one, body, far, mean in columns
            if not math.isnan(body)
        ]

    def series(self, request: Request) -> Response:
        """Returns the page of a series: its distribution over machines; without one, the list of series."""
        day, words = self._day(request), request.query_params
        listed = self.fleet.of_day("page_series", day)
        if "id" not in words:
            return self._page(request, "all.html", day, table(words, listed, ("probe", "title"), "probe"))
        one, rows, machine = self._one_series(request), self._places(request), words.get("machine", "")
        about = {
            "series": one,
            "machine": machine,
            "all": rows,
            "own": next((row for row in rows if row["machine_id"] == machine), None),
            "several_days": len(self.fleet.days_before(day)) > 1,
            "peers": self._peers(request),
        }
        shown = table(words, rows, ("machine_id", "name", "level"), "p50")
        return self._page(request, "series.html", day, about | shown)

    def _one_series(self, request: Request) -> Row:
        wanted = _word(request, "id")
        for row in self.fleet.of_day("page_series", self._day(request)):
            if str(row["series_id"]) == wanted:
                return row
        raise HTTPException(404, f"There is no series {wanted:.40} with figures on {self._day(request)}.")

    def _peers(self, request: Request) -> Row:
        """Returns the processor and the kernel of the machine that is marked; empty without one."""
        machine = request.query_params.get("machine")
        rows = self.fleet.of_day("page_machines", self._day(request)) if machine else []
        own: Row = next(
            (row for row in rows if row["machine_id"] == machine), {"cpu_model": "", "kernel": ""}
        )
        return {"model": own["cpu_model"], "kernel": own["kernel"]}

    def _places(self, request: Request) -> list[Row]:
        one = self._one_series(request)
        return self.fleet.of_day(
            "page_places", self._day(request), series=one["series_id"], **self._peers(request)
        )

    def run(self, request: Request) -> Response:
        """Returns the page of a run: its points."""
        day, words = self._day(request), request.query_params
        row = self._run(request)
        points = self.fleet.of_day("page_points", day, run=row["run_id"])
        shown = table(words, points, ("probe", "title", "level"), "probe")
        about = {"run": row, "machine": row["machine_id"], "points": points}
        return self._page(request, "run.html", day, about | shown)

    def _run(self, request: Request) -> Row:
        machine, run, day = _word(request, "machine"), _word(request, "id"), self._day(request)
        for row in self.fleet.before("page_history", day, machine=machine):
            if row["run_id"] == run and row["date"] == day.isoformat():
                return row
        raise HTTPException(404, f"There is no run {run:.80} of {machine:.80} on {day}.")

    def report(self, request: Request) -> Response:
        """Returns the report of a run, which the command makes: of its file, else of what the lake keeps."""
        row, day = self._run(request), self._day(request)
        run = _report.raw_result(self.results, row) if self.results else None
        if run is None:
            points, buckets = (
                self.fleet.of_day(name, day, run=row["run_id"]) for name in ("page_points", "page_buckets")
            )
            run = _report.run_of(row, points, buckets)
        try:
            page = _report.page_of(run)
        except CommandError as error:
            raise HTTPException(503, f"The report needs the command latscope: {error}") from None
        return HTMLResponse(page, headers={"Content-Security-Policy": _OF_REPORT})

    def metrics(self, request: Request) -> Response:
        """Returns the figures for Prometheus."""
        return Response(metrics(self.fleet), headers={"Content-Type": CONTENT_TYPE})

    def kept(self, answer: Answer) -> Answer:
        """Returns a function whose answers are kept until the lake changes."""
        return lambda request: self.fleet.answers.get(str(request.url), lambda: answer(request))

    def families_plot(self, request: Request) -> Response:
        """Returns the plot of a machine's families."""
        judged, machine = self.fleet.judge(self._day(request)), _word(request, "machine")
        if machine not in judged.places:
            raise HTTPException(404, "The machine has no peers.")
        group, row = judged.places[machine]
        return _svg(_plots.families(judged.shift[group], row, _look(request)))

    def machines_plot(self, request: Request) -> Response:
        """Returns the plot of a series over machines."""
        rows = self._places(request)
        return _svg(_plots.machines(rows, request.query_params.get("machine", ""), _look(request)))

    def samples_plot(self, request: Request) -> Response:
        """Returns the plot of a series' samples."""
        one, machine = self._one_series(request), request.query_params.get("machine", "")
        rows = self.fleet.of_day(
            "page_samples",
            self._day(request),
            series=one["series_id"],
            machine=machine,
            **self._peers(request),
        )
        rows = [row for row in rows if row["bucket"] < BUCKETS]
        if not rows:
            raise HTTPException(404, "The series has no samples.")
        return _svg(_plots.samples(rows, one["tick_ps"], bool(machine), _look(request)))

    def trend_plot(self, request: Request) -> Response:
        """Returns the plot of a series by day."""
        one, machine = self._one_series(request), request.query_params.get("machine", "")
        rows = self.fleet.before("page_trend", self._day(request), series=one["series_id"], machine=machine)
        return _svg(_plots.trend(rows, _look(request)))

    def failure(self, request: Request, error: Exception) -> Response:
        """Returns the page of an error."""
        status = (
            error.status_code
            if isinstance(error, HTTPException)
            else 400
            if isinstance(error, ValueError)
            else 500
        )
        text = error.detail if isinstance(error, HTTPException) else str(error)
        return self._page(request, "failure.html", None, {"status": status, "text": text}, status)

    def _day(self, request: Request) -> date:
        days, text = self.fleet.days(), request.query_params.get("day")
        try:
            day = date.fromisoformat(text) if text else days[0] if days else None
        except ValueError:
            raise HTTPException(400, f"{text!r:.40} is no day: YYYY-MM-DD.") from None
        if day not in days:
            raise HTTPException(404, f"No machine reported on {day}." if day else "The lake has no runs.")
        return day

    def _page(self, request: Request, name: str, day: date | None, about: Row, status: int = 200) -> Response:
        def here(**changed: object) -> str:
            return link(request.url.path, **(dict(request.query_params) | changed))

        usual = {
            "day": day,
            "days": self.fleet.days() if day else [],
            "here": here,
            "words": request.query_params,
            "lake": self.fleet.lake.root,
            "path": request.url.path,
        }
        return HTMLResponse(self.templates.get_template(name).render(usual | about), status)


def _of_machine(row: Row, column: str) -> Any:
    """Returns the value of a machine in a column of the overview: of a family its ratio."""
    if column == "state":
        far = max((score for _, score in row["families"].values()), default=0.0)
        return (_STATES[row["state"]], row["sick"]["p"] if row["sick"] else -far)
    return row["families"].get(column) or row.get(column)


def _word(request: Request, name: str) -> str:
    word = request.query_params.get(name)
    if not word:
        raise HTTPException(400, f"The address lacks {name}=….")
    return word


def _look(request: Request) -> _plots.Look:
    words = request.query_params
    return _plots.Look(dark="dark" in words, narrow="narrow" in words)


def _svg(picture: bytes) -> Response:
    return Response(picture, media_type="image/svg+xml")
