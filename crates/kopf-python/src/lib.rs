//! The native module of the Python package `kopf`: the engine for handlers in Python.
//!
//! Python owns the main thread and the event loop. The engine has its own threads, which never
//! attach to the interpreter: they push calls, questions and log lines into one queue, which the
//! loop empties when its descriptor becomes readable (see `queue`). The other end of the queue is in
//! `python/kopf/_engine`.

mod ask;
mod body;
mod call;
mod certificate;
mod cluster;
mod declare;
mod family;
mod fault;
mod index;
mod json;
mod login;
mod logs;
mod matter;
mod operator;
mod queue;
mod session;
mod settings;
mod stillness;
mod storage;
mod threads;
mod wanted;
mod world;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Runs a command of the native tool, the name of the program first; gives its exit code.
#[pyfunction]
fn run_command(py: Python<'_>, arguments: Vec<String>) -> u8 {
    py.detach(|| kopf_cli::main_with(arguments))
}

/// What to deploy for an operator: names and contents of files, derived from its declaration.
#[pyfunction]
fn build_manifests(
    declaration: &str,
    name: String,
    namespace: String,
    serves: Option<Vec<String>>,
    image: String,
) -> PyResult<Vec<(String, String)>> {
    let invalid = |error: &dyn std::fmt::Display| PyValueError::new_err(error.to_string());
    let mut declared = operator::Declared::parse(declaration)?;
    let (handlers, settings) = declared.understand(&std::sync::Arc::new(queue::Queue::new()?))?;
    let program = String::new();
    let (replicas, shards) = (1, false);
    let options = kopf_cli::manifests::Options {
        name,
        namespace,
        serves,
        image,
        program,
        replicas,
        shards,
        secure_metrics: false,
        metrics_from: Vec::new(),
    };
    let files = kopf_cli::manifests::files(&handlers, &settings, &options);
    let is_for_rust = |file: &kopf_cli::manifests::File| file.name == "Dockerfile";
    let files = files.iter().filter(|file| !is_for_rust(file));
    let text = |file: &kopf_cli::manifests::File| {
        Ok((file.name.to_owned(), file.text().map_err(|error| invalid(&error))?))
    };
    files.map(text).collect()
}

/// A self-signed certificate for these names, and its private key, both in PEM.
#[pyfunction]
fn build_certificate(hostnames: Vec<String>) -> PyResult<(String, String)> {
    certificate::build(hostnames).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The module `kopf._native`.
#[pymodule(name = "_native")]
mod native {
    #[pymodule_export]
    use super::ask::Ask;
    #[pymodule_export]
    use super::body::RawBody;
    #[pymodule_export]
    use super::call::Call;
    #[pymodule_export]
    use super::cluster::Cluster;
    #[pymodule_export]
    use super::index::NativeIndex;
    #[pymodule_export]
    use super::matter::Matter;
    #[pymodule_export]
    use super::operator::Operator;
    #[pymodule_export]
    use super::session::PythonRequest;
    #[pymodule_export]
    use super::world::World;
    #[pymodule_export]
    use super::{build_certificate, build_manifests, run_command};
}
