//! Routes the requests of the pages.

mod cluster;
mod object;
mod overview;

use serde_json::json;

use crate::answers::{Answered, Refused, plain};
use crate::asked::Asked;
use crate::desk::Desk;
use crate::{actions, children, pods, world};

/// Whether a path is one of those that change something.
pub(crate) fn is_change(path: &str) -> bool {
    path.starts_with("/api/do/")
}

/// Answers a query, or makes a change.
pub(crate) async fn answer(desk: &Desk, asked: &Asked) -> Answered {
    match asked.path.as_str() {
        "/api/overview" => Ok(overview::overview(desk, asked)),
        "/api/objects" => objects(desk, asked),
        "/api/object" => object::object(desk, asked).await,
        "/api/children" => children::children(desk, asked).await,
        "/api/handlers" => Ok(overview::handlers(desk)),
        "/api/cluster/kinds" => cluster::kinds(desk).await,
        "/api/cluster/list" => cluster::list(desk, asked).await,
        "/api/cluster/events" => cluster::events(desk, asked).await,
        "/api/cluster/worlds" => Ok(desk.worlds.list()),
        "/api/do/stage" => pods::stage(desk, asked).await,
        "/api/do/delete" => pods::delete(desk, asked).await,
        "/api/do/save" => world::save(desk, asked),
        "/api/do/restore" => world::restore(desk, asked).await,
        "/api/do/again" => actions::again(desk, asked).await,
        "/api/do/retry" => actions::retry(desk, asked).await,
        "/api/do/retry-failed" => actions::retry_failed(desk, asked).await,
        "/api/do/pause" => actions::pause(desk, asked, true).await,
        "/api/do/resume" => actions::pause(desk, asked, false).await,
        other => Err(Refused::Absent(format!("there is no {other}"))),
    }
}

/// The rows of a resource that have changed since the last request of the page.
fn objects(desk: &Desk, asked: &Asked) -> Answered {
    let resource = asked.required("resource")?;
    let known = desk.known.lock();
    match known.tables.since(resource, asked.number("since")) {
        Some(changes) => {
            let mut answer = plain(changes);
            answer["problem"] = json!(known.blind.get(resource));
            Ok(answer)
        }
        None => Err(Refused::Absent(format!("{resource} is not watched (yet)"))),
    }
}
