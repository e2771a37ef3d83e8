use super::*;

#[test]
fn names_are_kopfs() {
    assert_eq!(webhook_name("fn_1/spec.field", "my.op"), "fn-1.spec.field.my.op");
    assert_eq!(webhook_name("a<b>", "n"), "a3cb3e.n");
}

#[test]
fn the_id_ends_the_path_of_url_and_service() {
    let config = json!({"url": "https://host:1/x/", "service": {"name": "s", "path": "/p"}});
    let addressed = addressed(&config, "fn/a b");
    assert_eq!(addressed["url"], "https://host:1/x/fn/a%20b");
    assert_eq!(addressed["service"]["path"], "/p/fn/a%20b");
}
