//! The states that a live view shows.

use kopf_model::Object;
use serde_json::json;

use super::Live;

fn object(version: &str) -> Object {
    Object::from_value(json!({"metadata": {"name": "a", "resourceVersion": version}}))
}

#[test]
fn a_view_never_shows_older_states_unless_the_server_was_restored() {
    let live = Live::new(object("9"));
    let shown = |version: &str| {
        live.set(object(version));
        live.get().resource_version().to_owned()
    };
    assert_eq!([shown("8"), shown("10"), shown("9"), shown("10")], ["9", "10", "10", "10"]);
    live.doubt();
    assert_eq!([shown("3"), shown("2"), shown("4")], ["3", "3", "4"]);
}

#[test]
fn versions_that_are_not_numbers_are_always_newer() {
    let live = Live::new(object("9"));
    live.set(object("opaque"));
    assert_eq!(live.get().resource_version(), "opaque");
    live.set(object("1"));
    assert_eq!(live.get().resource_version(), "1");
}
