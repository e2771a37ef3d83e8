//! `kopf dev` from start to end, with a fake cargo and a fake operator that the test controls.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use expect_test::{Expect, expect};
use rustix::process::{Pid, Signal, kill_process};

use crate::screen::{command, without_ports};

/// The timeout of each step on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Builds at once, unless the source is marked as broken.
const CARGO: &str = r#"#!/bin/bash
if [ "$1" = metadata ]; then
  echo '{"packages": [{"name": "hello", "manifest_path": "FOLDER/Cargo.toml", "source": null,
    "default_run": null, "targets": [{"name": "hello", "kind": ["bin"]}]}]}'
elif grep -q broken FOLDER/src/main.rs; then
  echo '{"reason": "compiler-message", "message": {"level": "error", "message": "mismatched types", "code": {"code": "E0308"}, "spans": [{"is_primary": true, "file_name": "src/main.rs", "line_start": 3, "column_start": 5, "label": "expected `u32`"}]}}'
  exit 101
else
  echo '{"reason": "compiler-artifact", "target": {"name": "hello", "kind": ["bin"]}, "fresh": false, "executable": "FOLDER/operator"}'
fi
"#;

/// Prints that it has started; the test answers its probes.
const OPERATOR: &str = r#"#!/bin/bash
if [ "$1" = describe ]; then
  echo '{"handlers": [{"kind": "create", "resource": {"group": "kopf.dev", "version": "v1", "plural": "greetings"}}]}'
  exit
fi
echo '{"message": "hello from the operator", "object": {"name": "a", "namespace": "default"}, "severity": "info", "timestamp": "2026-11-16T12:00:15.000000+00:00"}'
if [ -e FOLDER/stubborn ]; then trap '' TERM; else trap 'rm FOLDER/started; exit 0' TERM; fi
echo "$@" > FOLDER/started.new; mv FOLDER/started.new FOLDER/started
while true; do sleep 0.05; done
"#;

struct Session {
    folder: tempfile::TempDir,
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Session {
    fn start(is_stubborn: bool) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().canonicalize().expect("the folder is there");
        std::fs::create_dir(path.join("src")).expect("a folder");
        std::fs::write(path.join("Cargo.toml"), "[package]\n").expect("a file");
        std::fs::write(path.join("src/main.rs"), "fine\n").expect("a file");
        if is_stubborn {
            std::fs::write(path.join("stubborn"), "").expect("a file");
        }
        let cargo = program(&path, "cargo", CARGO);
        program(&path, "operator", OPERATOR);
        let mut command = command(&path);
        command.arg("dev").env("CARGO", cargo).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the command runs");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // The test may be over already.
                let _ = sender.send(line);
            }
        });
        let session = Self { folder, child, lines, seen: Vec::new() };
        std::thread::spawn(move || answer_probes(&path));
        session
    }

    /// Reads until a line contains the text.
    #[track_caller]
    fn wait_for(&mut self, text: &str) {
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            let is_it = line.contains(text);
            self.seen.push(line);
            if is_it {
                return;
            }
        }
        panic!("`{text}` was not said, but:\n{}", self.seen.join("\n"));
    }

    /// Saves the source as editors do: to a temporary file that is then renamed.
    fn save(&self, text: &str) {
        let source = self.folder.path().join("src");
        std::fs::write(source.join(".main.rs"), text).expect("a file");
        std::fs::rename(source.join(".main.rs"), source.join("main.rs")).expect("a file");
    }

    fn interrupt(&self) {
        let id = Pid::from_raw(self.child.id().try_into().expect("a process")).expect("a process");
        kill_process(id, Signal::INT).expect("it is still there");
    }

    /// Waits for the end; the whole output must match.
    fn end(mut self, expected: Expect) -> ExitStatus {
        let status = self.child.wait().expect("it can be waited for");
        self.seen.extend(self.lines.iter());
        let folder = self.folder.path().canonicalize().expect("the folder is there");
        let text = self.seen.join("\n").replace(&folder.display().to_string(), "FOLDER");
        expected.assert_eq(&(without_seconds(&without_ports(&text)) + "\n"));
        status
    }
}

fn program(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    let text = text.replace("FOLDER", &folder.display().to_string());
    std::fs::write(&path, text).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    path
}

/// Answers in place of the operator: ready once it has printed that it has started.
fn answer_probes(folder: &Path) {
    let started = folder.join("started");
    let arguments = loop {
        match std::fs::read_to_string(&started) {
            Ok(text) => break text,
            // The test ends when its folder is removed.
            Err(_) if !folder.exists() => return,
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let address = arguments.split("--liveness=http://").nth(1).and_then(|it| it.split('/').next());
    let listener = TcpListener::bind(address.expect("probes are wanted")).expect("a free port");
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else { return };
        let mut request = [0; 1024];
        let code = if started.exists() { "200 OK" } else { "503 Service Unavailable" };
        let body = r#"{"sequence":0,"objects":[]}"#;
        let length = body.len();
        let answer = format!("HTTP/1.1 {code}\r\ncontent-length: {length}\r\n\r\n{body}");
        // The client may disconnect at any moment.
        let _ = stream.read(&mut request).and_then(|_| stream.write_all(answer.as_bytes()));
    }
}

/// The same with `N s` instead of seconds with a decimal.
fn without_seconds(text: &str) -> String {
    let clean = |line: &str| {
        let mut words: Vec<&str> = line.split(' ').collect();
        for index in 1..words.len() {
            let is_number = words[index - 1].parse::<f64>().is_ok();
            if is_number && matches!(words[index], "s" | "s.") {
                words[index - 1] = "N";
            }
        }
        words.join(" ")
    };
    text.lines().map(clean).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_session_builds_runs_complains_replaces_and_stops() {
    let mut session = Session::start(false);
    session.wait_for("The operator is running");
    session.save("broken\n");
    session.wait_for("E0308");
    session.save("#[kopf::on::create(Thing)]\npub fn forgotten() {}\n");
    session.wait_for("The operator is running");
    session.interrupt();
    let status = session.end(expect![[r#"
        A Kubernetes API server is ready at https://127.0.0.1:PORT
        In another terminal:

            export KUBECONFIG=FOLDER/kopf.kubeconfig

        The web UI is at http://127.0.0.1:PORT/#token=TOKEN
        Press Ctrl-C to stop, twice to stop at once.
        Built in N s.
        12:00:15 INFO  default/a hello from the operator
        The operator is running, N s after the start.
        main.rs has changed; building.
        The build failed; the former operator goes on.
          src/main.rs:3:5  mismatched types: expected `u32` [E0308]
        main.rs has changed; building.
        Built in N s.
        The handler `forgotten` is never called: it is in no operator.
        12:00:15 INFO  default/a hello from the operator
        The operator is running, N s after the change.
        Stopping; press Ctrl-C again to stop at once.
        Stopped.
    "#]]);
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_second_interrupt_does_not_wait_for_the_operator() {
    let mut session = Session::start(true);
    session.wait_for("The operator is running");
    session.interrupt();
    session.wait_for("press Ctrl-C again");
    session.interrupt();
    let status = session.end(expect![[r#"
        A Kubernetes API server is ready at https://127.0.0.1:PORT
        In another terminal:

            export KUBECONFIG=FOLDER/kopf.kubeconfig

        The web UI is at http://127.0.0.1:PORT/#token=TOKEN
        Press Ctrl-C to stop, twice to stop at once.
        Built in N s.
        12:00:15 INFO  default/a hello from the operator
        The operator is running, N s after the start.
        Stopping; press Ctrl-C again to stop at once.
        Stopped by force.
    "#]]);
    assert_eq!(status.code(), Some(130));
}
