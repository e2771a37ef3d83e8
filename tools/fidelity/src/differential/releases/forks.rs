//! Objects whose states differ since an earlier step that only one of the releases accepted.
//!
//! Pure. Later steps about the same objects differ as a consequence; they are counted apart. As for
//! every other explanation, such a step must be equal on the release that the subject follows.

use serde_json::Value;

use super::Exchanges;

pub(super) const ABOUT: &str =
    "consequences: an earlier write to the same object was accepted by one of the releases only";

/// Objects as the path of their collection without the version, and their name.
#[derive(Default)]
pub(super) struct Forks(Vec<(String, String)>);

impl Forks {
    /// Notes an explained step if it changed an object on one side only.
    pub(super) fn note(&mut self, exchanges: &Exchanges) {
        let is_write = matches!(exchanges.method, "POST" | "PUT" | "PATCH" | "DELETE");
        let (judge, subject) = exchanges.statuses();
        let accepted_once = (judge < 300) != (subject < 300);
        if is_write && accepted_once && !exchanges.query.contains("dryRun=") {
            self.0.extend(object(exchanges));
        }
    }

    /// Whether the request is about such an object, or about a collection that contains one.
    pub(super) fn are_about(&self, exchanges: &Exchanges) -> bool {
        let (collection, name) = parts(exchanges.path);
        let name = name.or_else(|| answered_name(exchanges));
        let is_collection = name.is_none();
        self.0.iter().any(|(forked, forked_name)| {
            *forked == collection && (is_collection || name.as_ref() == Some(forked_name))
        })
    }
}

/// The object that the request writes.
fn object(exchanges: &Exchanges) -> Option<(String, String)> {
    let (collection, name) = parts(exchanges.path);
    Some((collection, name.or_else(|| answered_name(exchanges))?))
}

/// The name in the answer to a POST: of the object, or in the details of the error.
fn answered_name(exchanges: &Exchanges) -> Option<String> {
    if exchanges.method != "POST" {
        return None;
    }
    let name = |side: &Value| {
        let response = &side["response"];
        let name = response["metadata"]["name"].as_str().or(response["details"]["name"].as_str());
        name.map(ToOwned::to_owned)
    };
    name(exchanges.judge).or_else(|| name(exchanges.subject))
}

/// The group, namespace and resource of a path, and the name, if there is one:
/// `/apis/apps/v1/namespaces/n/deployments/d/status` is `apps/n/deployments` and `d`.
fn parts(path: &str) -> (String, Option<String>) {
    let mut segments = path.trim_start_matches('/').split('/');
    let group = match segments.next() {
        Some("apis") => segments.next().unwrap_or_default(),
        _ => "",
    };
    let _version = segments.next();
    let mut rest: Vec<&str> = segments.collect();
    let namespace = if rest.first() == Some(&"namespaces") && rest.len() > 2 {
        rest.drain(..2).nth(1).unwrap_or_default()
    } else {
        ""
    };
    let resource = rest.first().copied().unwrap_or_default();
    let name = rest.get(1).map(|name| (*name).to_owned());
    (format!("{group}/{namespace}/{resource}"), name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::differential::compare::Sides;

    fn sides(judge: u64, subject: u64) -> Sides {
        let side = |status: u64| {
            let response = if status < 300 {
                json!({"metadata": {"name": "a"}})
            } else {
                json!({"details": {"name": "a"}})
            };
            json!({"status": status, "response": response})
        };
        Sides { judge: side(judge), subject: side(subject) }
    }

    #[test]
    fn consequences_are_about_the_same_object_in_any_version() {
        let mut forks = Forks::default();
        let refused = sides(422, 201);
        forks.note(&Exchanges::new("POST /apis/x/v2/namespaces/${ns}/things", &refused));
        let later = sides(404, 200);
        let are_about = |request: &str| forks.are_about(&Exchanges::new(request, &later));
        assert!(are_about("GET /apis/x/v1/namespaces/${ns}/things/a/status?x=y"));
        assert!(are_about("GET /apis/x/v1/namespaces/${ns}/things"));
        assert!(!are_about("GET /apis/x/v1/namespaces/${ns}/things/b"));
        assert!(!are_about("GET /apis/x/v1/namespaces/other/things/a"));
        assert!(!are_about("GET /apis/x/v1/namespaces/${ns}/others/a"));
    }

    #[test]
    fn dry_runs_and_writes_that_both_accept_have_no_consequences() {
        let mut forks = Forks::default();
        forks.note(&Exchanges::new("POST /api/v1/namespaces/n/pods?dryRun=All", &sides(422, 201)));
        forks.note(&Exchanges::new("POST /api/v1/namespaces/n/pods", &sides(201, 201)));
        let later = sides(404, 200);
        assert!(!forks.are_about(&Exchanges::new("GET /api/v1/namespaces/n/pods/a", &later)));
    }
}
