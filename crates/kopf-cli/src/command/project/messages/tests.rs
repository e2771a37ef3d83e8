//! Tests with lines as cargo prints them.

use super::{Diagnostic, Message, Messages};
use crate::command::project::{BuildError, Built};

const COMPILED: &str = r#"{"reason":"compiler-artifact","target":{"kind":["lib"],"name":"serde"},
    "fresh":false,"executable":null}"#;
const PROGRAM: &str = r#"{"reason":"compiler-artifact","target":{"kind":["bin"],"name":"hello"},
    "fresh":false,"executable":"/t/debug/hello"}"#;
const COMPLAINT: &str = r#"{"reason":"compiler-message","message":{"level":"error",
    "message":"mismatched types","code":{"code":"E0308"},"spans":[{"is_primary":true,
    "file_name":"src/lib.rs","line_start":31,"column_start":5,"label":"expected `String`"}]}}"#;
const ABORTING: &str = r#"{"reason":"compiler-message","message":{"level":"error",
    "message":"aborting due to 1 previous error","code":null,"spans":[]}}"#;

#[test]
fn the_program_is_found_among_the_artifacts() {
    let mut messages = Messages::new("hello");
    assert_eq!(messages.read(COMPILED), Message::Compiled("serde".into()));
    assert_eq!(messages.read("warning: printed by a build script"), Message::Other);
    messages.read(PROGRAM);
    assert_eq!(messages.compiled, 2);
    let built = Built { executable: "/t/debug/hello".into(), is_fresh: false };
    assert_eq!(messages.conclude(true, ""), Ok(built));
}

#[test]
fn complaints_keep_their_place_and_their_label() {
    let mut messages = Messages::new("hello");
    messages.read(COMPLAINT);
    messages.read(ABORTING);
    let expected = Diagnostic {
        place: Some("src/lib.rs:31:5".into()),
        message: "mismatched types".into(),
        label: Some("expected `String`".into()),
        code: Some("E0308".into()),
    };
    assert_eq!(messages.conclude(false, "x"), Err(BuildError::Diagnostics(vec![expected])));
}

#[test]
fn errors_of_cargo_itself_are_reported_from_the_first_one() {
    let stderr = "    Updating crates.io index\nerror: no matching package named `nope` found\n";
    let expected = BuildError::Cargo("no matching package named `nope` found".into());
    assert_eq!(Messages::new("hello").conclude(false, stderr), Err(expected));
}
