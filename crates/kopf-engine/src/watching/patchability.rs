//! Finds resources that can be patched although discovery does not list the verb.
//!
//! Discovery is unreliable about this: for a terminating CustomResourceDefinition it does not list
//! `patch`, but the finalizers of its objects can be removed only by patches. So the server is
//! asked with a patch that changes nothing. This needs no rights on definitions.

use std::sync::Arc;

use kopf_client::{Cluster, Discovered, Patchable};
use kopf_core::handler::Handler;
use kopf_model::Resource;
use kopf_model::namespace::NamespacePattern;

use crate::cluster_view::{Scope, is_doubtful};

/// The namespace for the request if the operator serves no namespace with a known name.
const ANY_NAMESPACE: &str = "default";

/// Adds `patch` to the verbs of resources that the server lets us patch.
///
/// If the server does not respond, `patch` is added too, since a resource that is not served keeps
/// its finalizers; the version counts as unavailable, so that it is discovered again.
pub(super) async fn confirm(
    cluster: &Cluster,
    handlers: &[Arc<Handler>],
    scope: &Scope,
    discovered: &mut Discovered,
) {
    let namespace = namespace_of(scope);
    let mut doubtful: Vec<&mut Resource> = discovered.resources.iter_mut().collect();
    doubtful.retain(|resource| is_doubtful(resource, handlers));
    let answers = doubtful.iter().map(|resource| Patchable::ask(cluster, resource, namespace));
    let answers = futures::future::join_all(answers).await;
    for (resource, patchable) in doubtful.into_iter().zip(answers) {
        tracing::debug!(%resource, ?patchable, "discovery lists no patch; asked the server");
        match patchable {
            Patchable::No => continue,
            Patchable::Yes => {}
            Patchable::Unknown => {
                let version = format!("{}/{}", resource.group, resource.version);
                discovered.unavailable.push(version);
            }
        }
        resource.verbs.insert("patch".to_owned());
    }
}

fn namespace_of(scope: &Scope) -> &str {
    let exact = match scope {
        Scope::Cluster => None,
        Scope::Namespaces(patterns) => patterns.iter().find_map(NamespacePattern::exact),
    };
    exact.unwrap_or(ANY_NAMESPACE)
}
