use super::*;

#[test]
fn an_operator_is_named_by_its_url() {
    let at = |url: &str| Operator::at(url).map(|it| it.to_string());
    assert_eq!(at("http://127.0.0.1:8080").unwrap(), "http://127.0.0.1:8080");
    assert_eq!(at("http://[::1]:8080/healthz").unwrap(), "http://[::1]:8080");
    assert_eq!(at("http://localhost").unwrap(), "http://localhost:80");
}

#[test]
fn a_wrong_port_is_an_error_and_not_the_default_one() {
    for url in ["http://127.0.0.1:99999", "http://127.0.0.1:0", "http://127.0.0.1:"] {
        let error = Operator::at(url).expect_err(url).to_string();
        assert_eq!(error, format!("`{url}` has a port that is not between 1 and 65535"));
    }
}
