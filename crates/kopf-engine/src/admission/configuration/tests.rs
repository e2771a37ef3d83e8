use super::*;

#[test]
fn names_are_kopfs() {
    assert_eq!(webhook_name("fn_1/spec.field", "my.op"), "fn-1.spec.field.my.op");
    assert_eq!(webhook_name("a<b>", "n"), "a3cb3e.n");
}
