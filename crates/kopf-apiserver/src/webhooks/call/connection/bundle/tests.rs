//! Tests which certificates a bundle trusts.

use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::{ServerName, UnixTime};

use super::BundleVerifier;

/// A self-signed CA certificate for `localhost`, as created by Kopf.
fn self_signed_authority() -> rcgen::Certificate {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a valid name");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(2040, 1, 1);
    params.self_signed(&KeyPair::generate().expect("a key")).expect("a certificate")
}

fn verify(trusted: &rcgen::Certificate, shown: &rcgen::Certificate, name: &str, year: u64) -> bool {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        BundleVerifier::new(trusted.pem().as_bytes(), provider).expect("a bundle that can be used");
    let name = ServerName::try_from(name).expect("a valid name");
    let now = UnixTime::since_unix_epoch(Duration::from_secs((year - 1970) * 31_557_600));
    verifier.verify_server_cert(shown.der(), &[], &name, &[], now).is_ok()
}

#[test]
fn a_self_signed_authority_in_the_bundle_is_accepted() {
    let certificate = self_signed_authority();
    assert!(verify(&certificate, &certificate, "localhost", 2026));
}

#[test]
fn a_certificate_for_another_name_is_refused() {
    let certificate = self_signed_authority();
    assert!(!verify(&certificate, &certificate, "example.com", 2026));
}

#[test]
fn an_expired_certificate_is_refused() {
    let certificate = self_signed_authority();
    assert!(!verify(&certificate, &certificate, "localhost", 2050));
}

#[test]
fn a_certificate_that_is_not_in_the_bundle_is_refused() {
    let (trusted, shown) = (self_signed_authority(), self_signed_authority());
    assert!(!verify(&trusted, &shown, "localhost", 2026));
}
