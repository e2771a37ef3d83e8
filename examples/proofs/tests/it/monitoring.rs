//! The alert rules and dashboards of `manifests --extras` use only metrics that exist.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The timeout for the operator to handle its first object.
const PATIENCE: Duration = Duration::from_secs(120);

fn example() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_any-example"));
    command.env("EXAMPLE", "minimal");
    command
}

/// The names of metrics in a text.
fn metrics(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("kopf_")).map(str::to_owned).collect()
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(folder: &Path) -> (Running, String) {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../01-minimal/example.yaml");
    let kubeconfig = folder.join("kubeconfig");
    let mut command = example();
    command.args(["run", "--embedded", "--load"]).arg(manifest);
    command.arg("--kubeconfig").arg(&kubeconfig).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut running = Running(command.spawn().expect("the example can be run"));
    let output = running.0.stdout.take().expect("it is piped");
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    let found = lines.find(|line| line.contains("export KUBECONFIG="));
    assert!(found.is_some(), "it ended before it was ready");
    // Reads the rest of the output, so that the operator does not block.
    std::thread::spawn(move || lines.for_each(drop));
    let text = std::fs::read_to_string(kubeconfig).expect("it was announced");
    let address = text.split("url: http://").nth(1).expect("the address of the operator");
    let address = address.split_whitespace().next().expect("the address of the operator");
    (running, address.to_owned())
}

fn exported(address: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the operator listens");
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("the operator listens");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("metrics are text");
    text
}

#[test]
fn every_query_asks_for_a_metric_that_a_running_operator_exports() {
    let output = example().args(["manifests", "--image", "x", "--extras"]).output();
    let generated =
        String::from_utf8(output.expect("the example can be run").stdout).expect("text");
    let asked = metrics(&generated);
    assert!(asked.len() > 10, "{asked:?}");
    assert!(asked.contains("kopf_handler_duration_seconds_bucket"), "{asked:?}");
    let folder = tempfile::tempdir().expect("a folder of our own can be made");
    let (_running, address) = start(folder.path());
    let deadline = Instant::now() + PATIENCE;
    loop {
        // The metrics of a handler exist from its first call on.
        let text = exported(&address);
        let known = metrics(&text);
        let missing: Vec<&String> = asked.difference(&known).collect();
        if missing.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "{missing:?} are not among {known:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}
