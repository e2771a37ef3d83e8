//! The certificate authority of one server and the certificates that it signs.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A generated certificate authority.
pub(crate) struct Authority {
    ca_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Generates a new authority.
    pub(crate) fn generate() -> Result<Self, BoxError> {
        let key = KeyPair::generate()?;
        let params = authority_parameters()?;
        let certificate = params.self_signed(&key)?;
        Ok(Self { ca_pem: certificate.pem(), issuer: Issuer::new(params, key) })
    }

    /// Restores an authority from its certificate and key.
    pub(crate) fn from_pem(ca_pem: String, key_pem: &str) -> Result<Self, BoxError> {
        let key = KeyPair::from_pem(key_pem)?;
        // Names and usages are always the same, so the old certificate is valid for the new
        // parameters.
        Ok(Self { ca_pem, issuer: Issuer::new(authority_parameters()?, key) })
    }

    /// The authority's private key in PEM form.
    pub(crate) fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// The authority's certificate in PEM form.
    pub(crate) fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// A TLS acceptor with a certificate for `address` and for the usual local names.
    pub(crate) fn acceptor(&self, address: SocketAddr) -> Result<TlsAcceptor, BoxError> {
        let key = KeyPair::generate()?;
        let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let mut params = CertificateParams::new(names.map(str::to_owned).to_vec())?;
        for ip in [IpAddr::from([127, 0, 0, 1]), IpAddr::from([0u16, 0, 0, 0, 0, 0, 0, 1])] {
            params.subject_alt_names.push(SanType::IpAddress(ip));
        }
        if !address.ip().is_loopback() && !address.ip().is_unspecified() {
            params.subject_alt_names.push(SanType::IpAddress(address.ip()));
        }
        params.distinguished_name.push(DnType::CommonName, "kopf-apiserver");
        let certificate = params.signed_by(&key, &self.issuer)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

fn authority_parameters() -> Result<CertificateParams, BoxError> {
    let mut params = CertificateParams::new(Vec::<String>::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "kopf-apiserver-ca");
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    Ok(params)
}
