//! Runs the command and returns its output, without parts that differ between runs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use kopf_apiserver::{Listening, Server};
use serde_json::Value;

/// A server, and a terminal with its kubeconfig.
pub(crate) struct Terminal {
    pub(crate) client: kube::Client,
    folder: tempfile::TempDir,
    kubeconfig: PathBuf,
    _listening: Listening,
}

impl Terminal {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let server = Server::new();
        let listening = server.listen("127.0.0.1:0".parse().expect("an address")).await;
        let listening = listening.expect("a free port");
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, listening.kubeconfig()).expect("a file");
        let client = kube::Client::new(server.service(), "default");
        Self { client, folder, kubeconfig, _listening: listening }
    }

    /// The output of a command.
    pub(crate) async fn run(&self, arguments: &[&str]) -> String {
        let mut command = command(self.folder.path());
        command.env("KUBECONFIG", &self.kubeconfig).args(arguments);
        let output = tokio::task::spawn_blocking(move || command.output()).await;
        let output = output.expect("no panic").expect("the command runs");
        screen(&output, self.folder.path())
    }

    /// Creates an object by the path of its collection.
    pub(crate) async fn create(&self, path: &str, object: &Value) {
        let request = http::Request::post(path)
            .header("content-type", "application/json")
            .body(object.to_string().into_bytes())
            .expect("a request");
        self.client.request::<Value>(request).await.expect("the server accepts it");
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let request = http::Request::get(path).body(Vec::new()).expect("a request");
        self.client.request(request).await.expect("it is there")
    }
}

/// The command in its own folder, without the developer's environment.
pub(crate) fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kopf"));
    let kept = ["PATH", "CARGO", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"];
    let kept = kept.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    command.env_clear();
    if let Some(home) = std::env::home_dir() {
        // The default folders of rustup; the developer's home is hidden below.
        command.env("RUSTUP_HOME", home.join(".rustup")).env("CARGO_HOME", home.join(".cargo"));
    }
    command.envs(kept).env("HOME", folder).current_dir(folder);
    command
}

/// The complete output and the exit code.
pub(crate) fn screen(output: &Output, folder: &Path) -> String {
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    let code = output.status.code().map_or_else(|| "none".to_owned(), |code| code.to_string());
    // The names of temporary folders vary, and may be behind a symbolic link.
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let text = text.replace(&folder.display().to_string(), "FOLDER");
    format!("{}(exit code {code})\n", without_ports(&text))
}

/// Replaces port numbers on loopback with `PORT`, and tokens with `TOKEN`.
pub(crate) fn without_ports(text: &str) -> String {
    let mut parts = text.split("#token=");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str("#token=TOKEN");
        text.push_str(part.trim_start_matches(|character: char| character.is_ascii_hexdigit()));
    }
    let mut parts = text.split("127.0.0.1:");
    let mut clean = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        clean.push_str("127.0.0.1:PORT");
        clean.push_str(part.trim_start_matches(|character: char| character.is_ascii_digit()));
    }
    clean
}
