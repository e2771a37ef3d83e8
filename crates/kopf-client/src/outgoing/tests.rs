use super::*;

#[test]
fn a_path_is_sent_only_if_it_is_one_word() {
    for path in ["/api", "/apis/a.b/v1/namespaces/x/things?limit=5&continue=a%20b~|{}'"] {
        let outgoing = Outgoing::get(path.to_owned());
        outgoing.check().unwrap();
        // So it never fails for clients that were created elsewhere.
        assert_eq!(outgoing.to_request().unwrap().uri().to_string(), path);
    }
    for path in [
        "",
        "api",
        "/a b",
        "/a\r\nhost: other",
        "/a\n",
        "/a#b",
        "/\u{e9}",
        "/a\0",
        "/<",
        "/>",
        "/`",
        "/\"",
    ] {
        let error = Outgoing::get(path.to_owned()).check().unwrap_err();
        assert_eq!(error.failure, Failure::Malformed, "{path:?}");
    }
}
