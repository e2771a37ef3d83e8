//! Certificates of the operator's own ports: from PEM to a TLS acceptor.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// Why a certificate cannot be used.
pub(crate) type Unusable = Box<dyn std::error::Error + Send + Sync>;

/// A certificate or a key in PEM.
#[derive(Clone, PartialEq, Eq)]
pub enum Pem {
    /// The text itself.
    Text(String),
    /// A file, which is read again periodically: certificates are renewed.
    File(PathBuf),
}

/// Hides keys.
impl std::fmt::Debug for Pem {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(_) => formatter.write_str("Text"),
            Self::File(path) => write!(formatter, "File({})", path.display()),
        }
    }
}

impl Pem {
    pub(crate) fn read(&self) -> std::io::Result<String> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::File(path) => std::fs::read_to_string(path),
        }
    }
}

/// Accepts connections with this chain and key, both in PEM.
pub(crate) fn acceptor(chain: &str, key: &str) -> Result<TlsAcceptor, Unusable> {
    let chain = CertificateDer::pem_slice_iter(chain.as_bytes()).collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// A certificate that is its own authority, and its key, in PEM.
pub(crate) fn self_signed(mut names: Vec<String>) -> Result<(String, String), Unusable> {
    names.sort();
    names.dedup();
    let signed = rcgen::generate_simple_self_signed(names)?;
    Ok((signed.cert.pem(), signed.signing_key.serialize_pem()))
}
