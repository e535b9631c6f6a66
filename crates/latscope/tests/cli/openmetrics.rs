//! OpenMetrics text, as promtool and a real node_exporter read it, and the dashboard of its metrics.

use crate::support::{Place, eventually, has_program, run};
use latscope_core::fixture;
use latscope_core::report::{Account, Report};
use latscope_views::openmetrics::openmetrics;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

/// A result in which every metric has a value, and a label has what must be escaped.
fn full() -> Report {
    let mut report = Report { activity: Some(Account::default()), ..fixture::wake() };
    let judged = latscope_core::report::Verdict {
        status: latscope_core::report::VerdictStatus::Pass,
        checks: Vec::new(),
    };
    report.measurements[0].verdict = Some(judged);
    report.measurements[0].title = "a \"title\" \\ of\ntwo lines".to_owned();
    report
}

fn written(place: &Place) -> String {
    let result = place.file("r.json", full().to_json());
    let directory = place.directory("textfiles");
    let file = format!("{directory}/latscope.prom");
    run(&["show", &result, "--quiet", "--openmetrics", &file]).done();
    assert_eq!(crate::support::names(&directory), ["latscope.prom"]);
    file
}

#[test]
fn promtool_finds_nothing_wrong() {
    if !has_program("promtool_finds_nothing_wrong", "promtool") {
        return;
    }
    let place = Place::new();
    let file = fs::File::open(written(&place)).unwrap();
    let checked = Command::new("promtool").args(["check", "metrics"]).stdin(file).output().unwrap();
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success() && said.is_empty(), "{said}");
}

/// A process that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn scraped(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    text.contains("node_textfile_scrape_error").then_some(text)
}

#[test]
fn node_exporter_serves_every_series() {
    if !has_program("node_exporter_serves_every_series", "prometheus-node-exporter") {
        return;
    }
    let place = Place::new();
    let file = written(&place);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut node = Command::new("prometheus-node-exporter");
    node.args(["--collector.disable-defaults", "--collector.textfile"]);
    node.arg(format!("--collector.textfile.directory={}", place.at("textfiles")));
    node.arg(format!("--web.listen-address=127.0.0.1:{port}"));
    let _server = Server(node.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let served = eventually("it is scraped", || scraped(port));
    assert!(served.contains("node_textfile_scrape_error 0"), "{served}");
    let series = |text: &str| text.lines().filter(|line| line.starts_with("latscope_")).count();
    assert_eq!(series(&served), series(&fs::read_to_string(file).unwrap()));
    assert!(served.contains(r#"title="a \"title\" \\ of\ntwo lines""#), "{served}");
}

/// Names of metrics in a text.
fn metrics(text: &str) -> BTreeSet<String> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c: char| !word(c));
    words.filter(|word| word.starts_with("latscope_")).map(str::to_owned).collect()
}

fn queries(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(all) => {
            for (name, value) in all {
                match value.as_str() {
                    Some(text) if name == "expr" || name == "query" => found.push(text.to_owned()),
                    _ => queries(value, found),
                }
            }
        }
        Value::Array(all) => all.iter().for_each(|value| queries(value, found)),
        _ => {}
    }
}

#[test]
fn the_dashboard_asks_only_for_metrics_that_exist() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/grafana/latscope.json");
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let mut asked = Vec::new();
    queries(&dashboard, &mut asked);
    let text = openmetrics(&full());
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let exist = metrics(&lines.join("\n"));
    let asked = metrics(&asked.join("\n"));
    assert!(asked.len() >= 8 && asked.is_subset(&exist), "{asked:?} of {exist:?}");
}
