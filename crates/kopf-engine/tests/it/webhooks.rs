//! Shared by the tests of admission and conversion: endpoints, and certificates in files.

use std::path::PathBuf;
use std::time::Duration;

use kopf_engine::{AdmissionEndpoint, Pem};

/// A managed endpoint on loopback.
pub(crate) fn endpoint() -> AdmissionEndpoint {
    AdmissionEndpoint::managed(([127, 0, 0, 1], 0), "my-operator.dev")
}

/// A self-signed certificate in files, which can be renewed; they are removed on drop.
pub(crate) struct CertificateFiles {
    folder: PathBuf,
}

impl CertificateFiles {
    /// The first certificate, for the tests of this name.
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("kopf-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let files = Self { folder };
        files.renew();
        files
    }

    pub(crate) fn renew(&self) {
        let signed = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("signed");
        let [chain, key] = self.paths();
        std::fs::write(key, signed.signing_key.serialize_pem()).expect("a file");
        std::fs::write(chain, signed.cert.pem()).expect("a file");
    }

    /// The chain and the key.
    pub(crate) fn certificate(&self) -> (Pem, Pem) {
        let [chain, key] = self.paths();
        (Pem::File(chain), Pem::File(key))
    }

    fn paths(&self) -> [PathBuf; 2] {
        ["tls.crt", "tls.key"].map(|name| self.folder.join(name))
    }
}

impl Drop for CertificateFiles {
    fn drop(&mut self) {
        // Leftovers are removed with the machine's other temporary files.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Advances the clock by a minute, after which files are checked again.
pub(crate) async fn a_minute_passes() {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(61)).await;
    tokio::time::resume();
}
