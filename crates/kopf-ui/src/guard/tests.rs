use http::HeaderValue;

use super::*;

const TOKEN: &str = "a-secret";

fn guard() -> Guard {
    Guard { port: 4711, token: TOKEN.into() }
}

fn headers(pairs: &[(header::HeaderName, &'static str)]) -> HeaderMap {
    let pairs = pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
    pairs.collect()
}

#[test]
fn only_addresses_of_this_machine_with_our_port_are_ours() {
    for host in ["127.0.0.1:4711", "localhost:4711", "[::1]:4711"] {
        assert_eq!(guard().check_host(&headers(&[(header::HOST, host)])), Ok(()), "{host}");
    }
    // The second one is a DNS name that was rebound to this machine.
    for host in ["127.0.0.1", "evil.example:4711", "127.0.0.1:80", "localhost.evil.example:4711"] {
        let checked = guard().check_host(&headers(&[(header::HOST, host)]));
        assert_eq!(checked, Err(Rejection::Host), "{host}");
    }
    assert_eq!(guard().check_host(&HeaderMap::new()), Err(Rejection::Host));
}

#[test]
fn nothing_is_served_without_the_token() {
    let host = (header::HOST, "127.0.0.1:4711");
    let right = headers(&[host.clone(), (header::AUTHORIZATION, "Bearer a-secret")]);
    assert_eq!(guard().check_caller(&Method::GET, &right, false), Ok(()));
    for wrong in ["Bearer a-secre", "Bearer a-secret2", "Bearer ", "a-secret"] {
        let wrong = headers(&[host.clone(), (header::AUTHORIZATION, wrong)]);
        assert_eq!(guard().check_caller(&Method::GET, &wrong, false), Err(Rejection::Token));
    }
    let none = headers(&[host]);
    assert_eq!(guard().check_caller(&Method::GET, &none, false), Err(Rejection::Token));
}

#[test]
fn changes_are_made_by_post_only_and_never_for_other_sites() {
    let host = (header::HOST, "127.0.0.1:4711");
    let token = (header::AUTHORIZATION, "Bearer a-secret");
    let ours = headers(&[host.clone(), token.clone(), (header::ORIGIN, "http://127.0.0.1:4711")]);
    assert_eq!(guard().check_caller(&Method::POST, &ours, true), Ok(()));
    assert_eq!(guard().check_caller(&Method::GET, &ours, true), Err(Rejection::Method));
    assert_eq!(guard().check_caller(&Method::PUT, &ours, true), Err(Rejection::Method));
    assert_eq!(guard().check_caller(&Method::POST, &ours, false), Err(Rejection::Method));
    let theirs = headers(&[host, token, (header::ORIGIN, "http://evil.example")]);
    assert_eq!(guard().check_caller(&Method::POST, &theirs, true), Err(Rejection::Origin));
}
