//! The embedded API server for Python: `kopf run --embedded` and the fixtures of tests.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use kopf_apiserver::{Listening, Server};
use kopf_cli::definitions;
use kopf_client::Policy;
use kopf_ui::{Operator, Serving, Ui};
use parking_lot::Mutex;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::threads::Threads;
use crate::wanted;

/// How long the server may take to end.
const CLOSING_GRACE: Duration = Duration::from_secs(2);

/// A Kubernetes API server in this process.
#[pyclass(frozen, module = "kopf._native")]
pub(crate) struct Cluster {
    state: Mutex<Option<Running>>,
    #[pyo3(get)]
    url: String,
    #[pyo3(get)]
    token: String,
    #[pyo3(get)]
    ca_pem: Option<String>,
    /// A kubeconfig in YAML.
    #[pyo3(get)]
    kubeconfig: String,
}

struct Running {
    threads: Threads,
    server: Server,
    listening: Listening,
    /// The web UI, until this is dropped.
    ui: Option<Serving>,
}

impl Running {
    /// The runtime and the server; none in a forked process.
    fn usable(&self) -> Option<(&tokio::runtime::Runtime, &Server)> {
        Some((self.threads.runtime()?, &self.server))
    }
}

#[pymethods]
impl Cluster {
    /// Starts a server on loopback; port 0 picks a free one.
    #[new]
    #[pyo3(signature = (port = 0, rbac = false))]
    fn new(py: Python<'_>, port: u16, rbac: bool) -> PyResult<Self> {
        py.detach(|| {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .thread_name("kopf-cluster")
                .enable_all()
                .build()?;
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let (server, listening) = runtime.block_on(async {
                let server = Server::builder().rbac(rbac).build();
                let listening = server.listen(address).await;
                (server, listening)
            });
            let listening =
                listening.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
            Ok(Self {
                url: listening.url(),
                token: listening.token().to_owned(),
                ca_pem: listening.ca_pem().map(str::to_owned),
                kubeconfig: listening.kubeconfig(),
                state: Mutex::new(Some(Running {
                    threads: Threads::new(runtime),
                    server,
                    listening,
                    ui: None,
                })),
            })
        })
    }

    /// Applies definitions, defines the resources that selectors name and the server does not know,
    /// then loads objects; all are JSON.
    fn install(
        &self,
        py: Python<'_>,
        definitions: &str,
        selectors: &str,
        documents: &str,
    ) -> PyResult<()> {
        let (wanted, documents) = wanted::parse(definitions, selectors, documents)?;
        // Locked only while detached: who waits for this lock may hold the interpreter.
        let outcome = py.detach(|| {
            let state = self.state.lock();
            let (runtime, server) = state.as_ref().and_then(Running::usable)?;
            Some(runtime.block_on(async {
                let client = kube::Client::new(server.service(), "default");
                definitions::prepare(&client, wanted, documents).await
            }))
        });
        let outcome = outcome.ok_or_else(|| PyRuntimeError::new_err("the cluster is stopped"))?;
        outcome.map(drop).map_err(|failure| PyRuntimeError::new_err(failure.render()))
    }

    /// Makes a request as the administrator, without sockets; gives the code and the answer.
    #[pyo3(signature = (method, path, body = None, content_type = "application/json"))]
    fn request(
        &self,
        py: Python<'_>,
        method: &str,
        path: &str,
        body: Option<String>,
        content_type: &str,
    ) -> PyResult<(u16, String)> {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .body(body.unwrap_or_default().into_bytes())
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        // Locked only while detached: who waits for this lock may hold the interpreter.
        let answered = py.detach(|| {
            let state = self.state.lock();
            let (runtime, server) = state.as_ref().and_then(Running::usable)?;
            Some(runtime.block_on(async {
                let client = kube::Client::new(server.service(), "default");
                client.request_text(request).await
            }))
        });
        match answered {
            None => Err(PyRuntimeError::new_err("the cluster is stopped")),
            Some(Ok(text)) => Ok((200, text)),
            Some(Err(kube::Error::Api(status))) => {
                Ok((status.code, serde_json::to_string(&status).unwrap_or_default()))
            }
            Some(Err(error)) => Err(PyRuntimeError::new_err(error.to_string())),
        }
    }

    /// Serves the web UI on loopback until the server stops; gives its address with the token.
    ///
    /// `operator` is the URL of the operator's probes, `kubeconfig` the path that commands name.
    fn serve_ui(&self, py: Python<'_>, operator: &str, kubeconfig: String) -> PyResult<String> {
        let operator =
            Operator::at(operator).map_err(|error| PyValueError::new_err(error.to_string()))?;
        // Locked only while detached: who waits for this lock may hold the interpreter.
        let served = py.detach(|| {
            let mut state = self.state.lock();
            let running = state.as_mut()?;
            let (runtime, server) = running.usable()?;
            let served = runtime.block_on(async {
                let client = kube::Client::new(server.service(), "default");
                let ui = Ui {
                    operator,
                    cluster: kopf_client::Cluster::with_client(client, Policy::default()),
                    embedded: Some(server.clone()),
                    kubeconfig: Some(kubeconfig),
                };
                ui.serve(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await
            });
            Some(served.map(|serving| running.ui.insert(serving).url()))
        });
        let served = served.ok_or_else(|| PyRuntimeError::new_err("the cluster is stopped"))?;
        served.map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    /// Stops the server.
    fn stop(&self, py: Python<'_>) {
        let state = self.state.lock().take();
        py.detach(|| {
            let Some(Running { threads, listening, .. }) = state else { return };
            if let Some(runtime) = threads.runtime() {
                runtime.block_on(listening.shutdown());
            }
            threads.shut_down(CLOSING_GRACE);
        });
    }
}
