//! Routes the requests of the pages.

mod cluster;
mod object;
mod overview;

use serde_json::json;

use crate::request::PageRequest;
use crate::response::{ApiError, ApiResult, to_json};
use crate::shared::Shared;
use crate::{actions, children, cluster_state, pods};

/// Whether a path is one of those that change something.
pub(crate) fn is_change(path: &str) -> bool {
    path.starts_with("/api/do/")
}

/// Answers a query, or makes a change.
pub(crate) async fn answer(shared: &Shared, request: &PageRequest) -> ApiResult {
    match request.path.as_str() {
        "/api/overview" => Ok(overview::overview(shared, request)),
        "/api/objects" => objects(shared, request),
        "/api/object" => object::object(shared, request).await,
        "/api/children" => children::children(shared, request).await,
        "/api/handlers" => Ok(overview::handlers(shared)),
        "/api/cluster/kinds" => cluster::kinds(shared).await,
        "/api/cluster/list" => cluster::list(shared, request).await,
        "/api/cluster/events" => cluster::events(shared, request).await,
        "/api/cluster/snapshots" => Ok(shared.snapshots.list()),
        "/api/do/stage" => pods::stage(shared, request).await,
        "/api/do/delete" => pods::delete(shared, request).await,
        "/api/do/save" => cluster_state::save(shared, request),
        "/api/do/restore" => cluster_state::restore(shared, request).await,
        "/api/do/again" => actions::again(shared, request).await,
        "/api/do/retry" => actions::retry(shared, request).await,
        "/api/do/retry-failed" => actions::retry_failed(shared, request).await,
        "/api/do/pause" => actions::pause(shared, request, true).await,
        "/api/do/resume" => actions::pause(shared, request, false).await,
        other => Err(ApiError::NotFound(format!("there is no {other}"))),
    }
}

/// The rows of a resource that have changed since the last request of the page.
fn objects(shared: &Shared, request: &PageRequest) -> ApiResult {
    let resource = request.required("resource")?;
    let known = shared.known.lock();
    match known.tables.since(resource, request.number("since")) {
        Some(changes) => {
            let mut answer = to_json(changes);
            answer["problem"] = json!(known.watch_errors.get(resource));
            Ok(answer)
        }
        None => Err(ApiError::NotFound(format!("{resource} is not watched (yet)"))),
    }
}
