use super::*;

#[test]
fn the_id_ends_the_path_of_url_and_service() {
    let config = json!({"url": "https://host:1/x/", "service": {"name": "s", "path": "/p"}});
    let addressed = addressed(&config, "fn/a b");
    assert_eq!(addressed["url"], "https://host:1/x/fn/a%20b");
    assert_eq!(addressed["service"]["path"], "/p/fn/a%20b");
}
