use super::*;

fn config(proxy: Option<&str>) -> Config {
    let mut config = Config::new(Uri::from_static("https://cluster.example:6443"));
    config.proxy_url = proxy.map(|url| url.parse().expect("a URL"));
    config
}

#[test]
fn the_proxy_of_the_credentials_is_used_with_its_password() {
    let found = choose(&config(Some("http://user:pa%20ss@proxy.example:3128")), false);
    let proxy = found.expect("usable").expect("a proxy");
    assert_eq!(proxy.address, Uri::from_static("http://proxy.example:3128/"));
    // `user:pa ss`
    assert_eq!(proxy.credentials.expect("credentials"), "Basic dXNlcjpwYSBzcw==");
}

#[test]
fn there_is_no_proxy_unless_somebody_names_one() {
    assert_eq!(choose(&config(None), false).expect("usable"), None);
}

#[test]
fn other_proxies_are_refused_rather_than_ignored() {
    let error = choose(&config(Some("socks5://proxy.example:1080")), false).expect_err("unknown");
    assert_eq!(error.to_string(), "could not use the credentials of the proxy");
}
