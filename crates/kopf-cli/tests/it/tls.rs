//! Servers with certificates of every kind, and kubeconfigs for them.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use rcgen::{
    BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// A certificate authority.
pub(crate) struct Authority {
    pub(crate) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().expect("the test can set this up");
        let mut params =
            CertificateParams::new(Vec::<String>::new()).expect("the test can set this up");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let pem = params.self_signed(&key).expect("the test can set this up").pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// A server whose certificate expires in a given year; it ends with the test.
    pub(crate) fn serve_until(&self, year: i32) -> SocketAddr {
        let key = KeyPair::generate().expect("the test can set this up");
        let mut params =
            CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("the test can set this up");
        (params.not_before, params.not_after) =
            (date_time_ymd(2019, 1, 1), date_time_ymd(year, 1, 1));
        let certificate = params.signed_by(&key, &self.issuer).expect("the test can set this up");
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the test can set this up")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .expect("the test can set this up");
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").expect("the test can set this up");
        let address = listener.local_addr().expect("the test can set this up");
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let Ok(mut connection) = rustls::ServerConnection::new(Arc::clone(&config)) else {
                    return;
                };
                while connection.is_handshaking() {
                    if connection.complete_io(&mut stream).is_err() {
                        break;
                    }
                }
            }
        });
        address
    }
}

/// Writes a kubeconfig for a server; returns its path.
pub(crate) fn kubeconfig(
    folder: &Path,
    server: &str,
    ca_pem: Option<&str>,
    token: &str,
) -> PathBuf {
    let authority = ca_pem.map(|pem| {
        let data = base64::engine::general_purpose::STANDARD.encode(pem);
        format!(", certificate-authority-data: {data}")
    });
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: it\n\
         clusters: [{{name: it, cluster: {{server: \"{server}\"{}}}}}]\n\
         users: [{{name: it, user: {{token: {token}}}}}]\n\
         contexts: [{{name: it, context: {{cluster: it, user: it}}}}]\n",
        authority.unwrap_or_default()
    );
    let path = folder.join("kubeconfig");
    std::fs::write(&path, text).expect("the test can set this up");
    path
}
