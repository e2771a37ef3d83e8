use super::*;

fn config(address: &str) -> Config {
    Config::new(address.parse().expect("an address"))
}

#[test]
fn authorities_matter_only_for_encrypted_connections() {
    // Another test may have installed one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let broken = Some(vec![b"no certificate".to_vec()]);
    let mut plain = config("http://localhost:8080");
    plain.root_cert.clone_from(&broken);
    assert!(Secrets::of(&plain, None).is_ok());
    plain.proxy_url = Some("https://localhost:8443".parse().expect("an address"));
    let proxy = crate::proxy::choose(&plain, false).expect("usable");
    assert!(matches!(Secrets::of(&plain, proxy.as_ref()), Err(Error::RustlsTls(_))));
    let mut encrypted = config("https://localhost:6443");
    encrypted.root_cert = broken;
    assert!(matches!(Secrets::of(&encrypted, None), Err(Error::RustlsTls(_))));
}

#[test]
fn the_name_of_the_server_must_be_a_name() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut config = config("http://localhost:8080");
    config.tls_server_name = Some("not a name".to_owned());
    assert!(matches!(Secrets::of(&config, None), Err(Error::RustlsTls(_))));
}
