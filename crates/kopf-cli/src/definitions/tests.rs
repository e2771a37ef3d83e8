//! Guesses of kinds.

use super::guess_kind;

#[test]
fn kinds_are_guessed_from_plurals() {
    assert_eq!(guess_kind("greetings"), "Greeting");
    assert_eq!(guess_kind("policies"), "Policy");
    assert_eq!(guess_kind("classes"), "Class");
    assert_eq!(guess_kind("sheep"), "Sheep");
}
