//! Operators as programs: separate processes, with the rights of their own manifests.
//!
//! Owns the processes and the port through which they reach the server. Each life of a process has
//! its own [`Transport`], like operators in the test's process. When the transport is shut, the
//! process is killed with a signal that it cannot catch, and restarted.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use kopf_apiserver::{RequestMatcher, Server, User};
use kube::client::Body;
use parking_lot::Mutex;
use serde::Deserialize as _;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tower::Service as _;

use crate::account::NAMESPACE;
use crate::disturbances::Disturbances;
use crate::requests::Requests;
use crate::transport::Transport;

/// The manifests of the program itself, which tests do not need.
const OF_THE_PROGRAM: &[&str] = &["Deployment", "Service"];
/// How long a killed process stays down.
const DOWNTIME: Duration = Duration::from_millis(50);

/// An operator as a program: an executable with the commands `run` and `manifests`, as with
/// `kopf::Operator::main`.
///
/// ```no_run
/// # use kopf_testing::{Program, World, WorldError};
/// # use serde_json::json;
/// # async fn example(world: World) -> Result<(), WorldError> {
/// world.launch(Program::new("target/debug/my-operator").variable("REGION", "north")).await;
/// let examples = world.objects("kopfexamples.v1.kopf.dev");
/// examples.create(&json!({"metadata": {"name": "a"}})).await?;
/// examples.until("a", "the result", |it| it["status"].is_object()).await?;
/// # Ok(())
/// # }
/// ```
/// In tests of the same package, the path is `env!("CARGO_BIN_EXE_my-operator")`.
#[derive(Clone, Debug)]
#[must_use = "start it with `world.launch(program)`"]
pub struct Program {
    file: PathBuf,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
}

impl Program {
    /// The program in this file.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self { file: file.into(), arguments: Vec::new(), variables: Vec::new() }
    }

    /// Adds an argument after `run --all-namespaces`.
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds an environment variable.
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.file);
        // Never use the developer's cluster.
        command.env_remove("KUBERNETES_SERVICE_HOST").env_remove("KUBECONFIG");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null());
        command
    }

    /// The manifests to deploy, except those of the program itself.
    pub(crate) async fn manifests(&self) -> Vec<Value> {
        let mut command = self.command();
        command.args(["manifests", "--image", "program:1", "--namespace", NAMESPACE]);
        let output = tokio::task::spawn_blocking(move || command.output()).await;
        let file = self.file.display();
        let output = output.expect("the task does not panic");
        let output = output.unwrap_or_else(|error| panic!("could not run {file}: {error}"));
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "`{file} manifests` failed: {complaint}");
        let text = String::from_utf8_lossy(&output.stdout);
        let documents = serde_norway::Deserializer::from_str(&text);
        let documents: Result<Vec<Value>, _> = documents.map(Value::deserialize).collect();
        let documents =
            documents.unwrap_or_else(|error| panic!("`{file} manifests` is no YAML: {error}"));
        let is_needed = |document: &Value| {
            !OF_THE_PROGRAM.contains(&document["kind"].as_str().unwrap_or_default())
        };
        documents.into_iter().filter(is_needed).collect()
    }

    fn start(&self, folder: &Path) -> Child {
        let log = std::fs::File::options().create(true).append(true).open(folder.join("log"));
        let log = log.expect("files can be made in a folder of our own");
        let errors = log.try_clone().expect("handles of files can be doubled");
        let mut command = self.command();
        command.args(["run", "--all-namespaces"]).args(&self.arguments);
        command.env("KUBECONFIG", folder.join("kubeconfig"));
        command.stdout(log).stderr(errors);
        let file = self.file.display();
        command.spawn().unwrap_or_else(|error| panic!("could not start {file}: {error}"))
    }
}

/// A program that runs in a world until the end of the world.
#[derive(Clone)]
pub struct RunningProgram {
    server: Server,
    life: Arc<Life>,
}

/// All lives of one program, one after the other.
pub(crate) struct Life {
    user: String,
    folder: tempfile::TempDir,
    // The transport of the current process; written when the previous one was killed, read by
    // connections.
    transport: Mutex<Transport>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

/// A process that does not outlive its guard.
struct Guarded(Child);

impl Drop for Guarded {
    fn drop(&mut self) {
        // It may have exited by itself; nothing of it is left in either case.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl RunningProgram {
    /// Starts a program as this user, and restarts it whenever it is killed.
    pub(crate) async fn start(
        program: Program,
        server: &Server,
        user: User,
        disturbances: Option<Arc<Disturbances>>,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("there is a free port");
        let port = listener.local_addr().expect("a bound port has a number").port();
        let folder = tempfile::tempdir().expect("a folder of our own can be made");
        std::fs::write(folder.path().join("kubeconfig"), kubeconfig(port)).expect("it is ours");
        let (name, reached) = (user.name.clone(), server.clone());
        let make_transport =
            move || Transport::new(reached.service_as(user.clone()), disturbances.clone());
        let (transport, tasks) = (Mutex::new(make_transport()), Mutex::default());
        let life = Arc::new(Life { user: name, folder, transport, tasks });
        let tasks = [
            tokio::spawn(serve(listener, Arc::clone(&life))),
            tokio::spawn(supervise(program, Arc::clone(&life), make_transport)),
        ];
        life.tasks.lock().extend(tasks);
        Self { server: server.clone(), life }
    }

    pub(crate) fn life(&self) -> Arc<Life> {
        Arc::clone(&self.life)
    }

    /// Ends the process permanently.
    pub async fn end(&self) {
        self.life.end().await;
    }

    /// Kills the process with a signal that it cannot catch; it is restarted.
    pub fn kill(&self) {
        self.life.transport.lock().kill();
    }

    /// The output of the program so far.
    #[must_use]
    pub fn output(&self) -> String {
        self.life.output()
    }

    /// The requests of the program about objects.
    #[must_use]
    pub fn requests(&self) -> Requests {
        self.life.requests(&self.server)
    }
}

impl Life {
    pub(crate) async fn end(&self) {
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for task in tasks {
            task.abort();
            // The process guard is dropped only when the aborted task has ended.
            let _ = task.await;
        }
    }

    pub(crate) fn output(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    pub(crate) fn requests(&self, server: &Server) -> Requests {
        Requests::matching(server, &RequestMatcher::any().user(&self.user))
    }
}

async fn serve(listener: TcpListener, life: Arc<Life>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let transport = life.transport.lock().clone();
        tokio::spawn(async move {
            let answer = hyper::service::service_fn(move |request: http::Request<_>| {
                let mut transport = transport.clone();
                async move {
                    let (parts, body): (_, hyper::body::Incoming) = request.into_parts();
                    let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
                    transport
                        .call(http::Request::from_parts(parts, Body::from(body.to_vec())))
                        .await
                }
            });
            let http = auto::Builder::new(TokioExecutor::new());
            // Processes close connections when they are killed.
            let _ = http.serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

async fn supervise(program: Program, life: Arc<Life>, make_transport: impl Fn() -> Transport) {
    loop {
        let process = Guarded(program.start(life.folder.path()));
        let transport = life.transport.lock().clone();
        transport.killed().await;
        drop(process);
        tokio::time::sleep(DOWNTIME).await;
        *life.transport.lock() = make_transport();
    }
}

/// A kubeconfig for the server on this machine; the transport determines the user.
fn kubeconfig(port: u16) -> String {
    format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: world\n  cluster:\n    \
         server: http://127.0.0.1:{port}\nusers:\n- name: operator\n  user: {{}}\n\
         contexts:\n- name: world\n  context:\n    cluster: world\n    user: operator\n    \
         namespace: {NAMESPACE}\ncurrent-context: world\n"
    )
}
