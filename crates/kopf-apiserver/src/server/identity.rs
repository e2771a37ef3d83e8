//! The secrets of a server with a data directory: its certificate authority, signing key and token.
//!
//! Responsible for one private file next to the data, so that kubeconfigs and service account
//! tokens stay valid when the server is restarted. Does not know what they are used for.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::authority::Authority;
use crate::persist::DataDirError;
use crate::tokens::TokenIssuer;

const FILE: &str = "identity.json";
/// Only the owner can read and write.
const PRIVATE: u32 = 0o600;

/// The secrets that identify a server across restarts.
pub(super) struct Identity {
    pub(super) authority: Authority,
    pub(super) issuer: TokenIssuer,
    pub(super) admin_token: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    authority_certificate: String,
    authority_key: String,
    token_key: String,
    admin_token: String,
}

impl Identity {
    /// Whether a directory has an identity, which is written at the first start.
    pub(super) fn exists(directory: &Path) -> bool {
        directory.join(FILE).exists()
    }

    /// Reads the identity in a directory, or creates and stores one with `admin_token`.
    pub(super) fn open(directory: &Path, admin_token: String) -> Result<Self, DataDirError> {
        let path = directory.join(FILE);
        let failed = |source: BoxError| DataDirError::Identity { path: path.clone(), source };
        match std::fs::read(&path) {
            Ok(text) => Self::decode(&text).map_err(failed),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let identity = Self {
                    authority: Authority::generate().map_err(failed)?,
                    issuer: TokenIssuer::random(),
                    admin_token,
                };
                let text = serde_json::to_vec_pretty(&identity.record())
                    .map_err(|error| failed(error.into()))?;
                write(&path, &text).map_err(|error| failed(error.into()))?;
                Ok(identity)
            }
            Err(error) => Err(failed(error.into())),
        }
    }

    fn record(&self) -> Record {
        Record {
            authority_certificate: self.authority.ca_pem().to_owned(),
            authority_key: self.authority.key_pem(),
            token_key: self.issuer.key_text(),
            admin_token: self.admin_token.clone(),
        }
    }

    fn decode(text: &[u8]) -> Result<Self, BoxError> {
        let record: Record = serde_json::from_slice(text)?;
        let issuer = TokenIssuer::from_key_text(&record.token_key).ok_or("tokenKey is no key")?;
        let authority = Authority::from_pem(record.authority_certificate, &record.authority_key)?;
        Ok(Self { authority, issuer, admin_token: record.admin_token })
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Writes a private file atomically.
fn write(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let staging = path.with_extension("new");
    let mut file: File =
        OpenOptions::new().write(true).create(true).truncate(true).mode(PRIVATE).open(&staging)?;
    file.write_all(text)?;
    file.sync_all()?;
    std::fs::rename(&staging, path)
}

#[cfg(test)]
mod tests;
