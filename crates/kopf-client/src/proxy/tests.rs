use super::*;

fn config(proxy: Option<&str>) -> Config {
    let mut config = Config::new(Uri::from_static("https://cluster.example:6443"));
    config.proxy_url = proxy.map(|url| url.parse().expect("a URL"));
    config
}

fn chosen(url: &str) -> Proxy {
    choose(&config(Some(url)), false).expect("usable").expect("a proxy")
}

#[test]
fn the_proxy_of_the_credentials_is_used_with_its_password() {
    let Proxy::Http { address, credentials } = chosen("http://user:pa%20ss@proxy.example:3128")
    else {
        panic!("it speaks HTTP");
    };
    assert_eq!(address, Uri::from_static("http://proxy.example:3128/"));
    // `user:pa ss`
    assert_eq!(credentials.expect("credentials"), "Basic dXNlcjpwYSBzcw==");
}

#[test]
fn only_https_proxies_are_encrypted() {
    assert!(chosen("https://proxy.example").is_encrypted());
    assert!(!chosen("http://proxy.example:443").is_encrypted());
    assert!(!chosen("socks5://proxy.example").is_encrypted());
}

#[test]
fn socks_proxies_have_a_default_port() {
    let of = |address, credentials| Proxy::Socks { address, credentials };
    let address = Uri::from_static("socks5://proxy.example:1080/");
    assert_eq!(chosen("socks5://proxy.example"), of(address, None));
    let address = Uri::from_static("socks5h://proxy.example:9050/");
    let credentials = Some(("user".to_owned(), "pa ss".to_owned()));
    assert_eq!(chosen("socks5h://user:pa%20ss@proxy.example:9050"), of(address, credentials));
}

#[test]
fn there_is_no_proxy_unless_configured() {
    assert_eq!(choose(&config(None), false).expect("usable"), None);
}

#[test]
fn other_proxies_are_rejected_rather_than_ignored() {
    for url in ["ftp://proxy.example:21", "socks4://me:secret@proxy.example", "odd://proxy"] {
        let error = choose(&config(Some(url)), false).expect_err(url);
        assert_eq!(error.to_string(), "could not use the credentials of the proxy");
        let cause = std::error::Error::source(&error).expect("a cause").to_string();
        assert!(cause.contains(url.split(':').next().expect("a scheme")), "{cause}");
        assert!(!cause.contains("secret"), "{cause}");
    }
}
