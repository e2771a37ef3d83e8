//! Connects to the cluster of the kubeconfig, and gives hints about specific connection problems.
//!
//! The errors of TLS and of sockets are identified by their messages, since their types are hidden
//! by the layers in between.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use kopf_client::{Cluster, DefaultLogin, Failure as Class, LoginError, Policy, RequestError};
use kube::config::Kubeconfig;

use crate::failure::Failure;

/// Nobody waits longer than this at a terminal.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// The cluster of a context, for interactive use: nothing is retried.
pub(super) fn cluster(context: Option<&str>) -> Cluster {
    let login = DefaultLogin { context: context.map(str::to_owned), ..DefaultLogin::default() };
    let policy = Policy {
        request_timeout: REQUEST_TIMEOUT,
        error_backoffs: Vec::new(),
        ..Policy::default()
    };
    Cluster::new(Arc::new(login), policy)
}

/// There are no credentials.
pub(super) fn no_login(error: LoginError) -> Failure {
    let hint = match &error {
        LoginError::Unusable { .. } => {
            "check the file of KUBECONFIG and its context, or start a cluster with `kopf cluster`"
        }
        _ => "set KUBECONFIG, or start a cluster with `kopf cluster`",
    };
    Failure::new(error).hint(hint)
}

/// The cluster does not respond, or not correctly.
pub(super) fn unreachable(error: RequestError, context: Option<&str>) -> Failure {
    let hint = match error.failure {
        Class::Unauthorized => "the server does not accept these credentials; log in again".into(),
        Class::Forbidden => "your account has no right to do this".into(),
        Class::Login => "set KUBECONFIG, or start a cluster with `kopf cluster`".into(),
        _ => hint_for(&texts(&error)),
    };
    let cluster = cluster_name(context);
    let said = match error.failure {
        Class::Unauthorized | Class::Forbidden => format!("{cluster} rejected the request"),
        _ => format!("could not reach {cluster}"),
    };
    Failure::new(anyhow::anyhow!(error).context(said)).hint(hint)
}

/// The display name of the cluster: its URL in the kubeconfig.
pub(super) fn cluster_name(context: Option<&str>) -> String {
    let server = || {
        let config = Kubeconfig::read().ok()?;
        let context = context.or(config.current_context.as_deref())?;
        let context = config.contexts.iter().find(|it| it.name == context)?.context.as_ref()?;
        let cluster = config.clusters.iter().find(|it| it.name == context.cluster)?;
        cluster.cluster.as_ref()?.server.clone()
    };
    server().map_or_else(|| "the cluster".to_owned(), |url| format!("the cluster at {url}"))
}

/// The hint for the messages of all causes.
pub(super) fn hint_for(texts: &str) -> String {
    let known = [
        ("Expired", "a certificate has expired: renew it, and check the clock of this machine"),
        ("expired", "a certificate has expired: renew it, and check the clock of this machine"),
        ("NotValidYet", "a certificate is not valid yet: check the clock of this machine"),
        (
            "UnknownIssuer",
            "the server is another one than the kubeconfig says: get a new kubeconfig",
        ),
        (
            "BadSignature",
            "the server is another one than the kubeconfig says: get a new kubeconfig",
        ),
        (
            "NotValidForName",
            "the server's certificate is for another host: check `server` in the kubeconfig",
        ),
        ("refused", "nothing listens there: is the cluster of your kubeconfig running?"),
        ("dns error", "the host is unknown: check `server` in the kubeconfig, and the network"),
        ("lookup", "the host is unknown: check `server` in the kubeconfig, and the network"),
    ];
    known.iter().find(|(sign, _)| texts.contains(sign)).map_or_else(
        || "is the cluster of your kubeconfig running and reachable?".to_owned(),
        |(_, hint)| (*hint).to_owned(),
    )
}

/// An error with all its causes, on one line.
pub(super) fn texts_of(error: &dyn Error) -> String {
    let mut text = error.to_string();
    for cause in std::iter::successors(error.source(), |&error| error.source()) {
        let said = cause.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
    }
    text
}

fn texts(error: &dyn Error) -> String {
    let chain = std::iter::successors(Some(error), |&error| error.source());
    chain.map(|error| format!("{error} {error:?}\n")).collect()
}
