//! The webhook certificate shared by replicas: stored in a Secret, and renewed before it expires.
//!
//! The first replica creates the Secret, with an authority and a certificate signed by it. The
//! leader renews it in two steps, so that no replica presents a certificate that the cluster does
//! not trust yet: first the next authority is trusted, and some time later its certificate is used.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use kopf_client::{Cluster, Failure, PatchContent, RequestError, Target, Urgency};
use kopf_model::{Object, Resource};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};

use super::{AdmissionEndpoint, Pem};

/// How long a certificate is valid.
const LIFE: Duration = Duration::from_secs(365 * 24 * 3600);
/// How long before its expiration it is renewed.
const RENEWING: Duration = Duration::from_secs(90 * 24 * 3600);
/// How long an authority is trusted before its certificate is used: longer than the interval in
/// which replicas read the Secret.
const SPREADING: Duration = Duration::from_secs(600);
/// Others may write at the same time.
const ATTEMPTS_MAX: u32 = 5;
/// The annotation with the expiration of the certificate.
const EXPIRES: &str = "kopf.dev/expires";
/// The annotation with the time since which the next authority is trusted.
const PREPARED: &str = "kopf.dev/prepared";

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub(super) enum SharedError {
    #[error("could not create a certificate")]
    Make(#[from] rcgen::Error),
    #[error("could not use the Secret {name}")]
    Request { name: String, source: Box<RequestError> },
    #[error("the Secret {name} has no certificate")]
    Damaged { name: String },
}

/// Where the certificate is stored.
pub(super) struct SharedCertificate {
    /// Not fenced: standby replicas serve webhooks too.
    pub(super) cluster: Cluster,
    pub(super) namespace: String,
    pub(super) name: String,
}

/// A certificate, its key and its authority, in PEM.
struct Made {
    authority: String,
    chain: String,
    key: String,
    expires: Timestamp,
}

/// What to do about the Secret.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Use,
    Create,
    /// It has expired: nothing can be kept.
    Replace,
    Prepare,
    Promote,
}

/// The dates in the Secret.
#[derive(Clone, Copy, Debug)]
struct Dates {
    expires: Option<Timestamp>,
    prepared: Option<Timestamp>,
}

fn step(found: Option<Dates>, is_chief: bool, now: Timestamp) -> Step {
    let Some(Dates { expires, prepared }) = found else { return Step::Create };
    // Certificates of others are left unchanged.
    let Some(expires) = expires else { return Step::Use };
    if now >= expires {
        return Step::Replace;
    }
    match prepared {
        _ if !is_chief => Step::Use,
        Some(prepared) if now >= prepared + SPREADING => Step::Promote,
        Some(_) => Step::Use,
        None if now + RENEWING >= expires => Step::Prepare,
        None => Step::Use,
    }
}

impl SharedCertificate {
    /// Reads the certificate into the endpoint; creates or renews it if necessary.
    pub(super) async fn refresh(
        &self,
        endpoint: &mut AdmissionEndpoint,
        is_chief: bool,
        now: Timestamp,
    ) -> Result<(), SharedError> {
        let failed =
            |source| SharedError::Request { name: self.name.clone(), source: Box::new(source) };
        for _ in 0..ATTEMPTS_MAX {
            let found = self.read().await.map_err(failed)?;
            let written = match step(found.as_ref().map(dates), is_chief, now) {
                Step::Use => break,
                Step::Create => self.create(&make(endpoint, now)?).await,
                Step::Replace => {
                    let made = make(endpoint, now)?;
                    self.patch(found.as_ref(), &content(&made), &times(made.expires, None)).await
                }
                Step::Prepare => {
                    let made = make(endpoint, now)?;
                    self.prepare(found.as_ref(), &made, now).await
                }
                Step::Promote => self.promote(found.as_ref()).await,
            };
            match written {
                Ok(()) => {}
                Err(error) if error.failure == Failure::Conflict => {}
                Err(error) => return Err(failed(error)),
            }
        }
        let found = self.read().await.map_err(failed)?;
        let text = |key: &str| found.as_ref().and_then(|it| data(it, key)).map(Pem::Text);
        let (Some(chain), Some(key), Some(authority)) =
            (text("tls.crt"), text("tls.key"), text("ca.crt"))
        else {
            return Err(SharedError::Damaged { name: self.name.clone() });
        };
        (endpoint.certificate, endpoint.authority) = (Some((chain, key)), Some(authority));
        Ok(())
    }

    async fn read(&self) -> Result<Option<Object>, RequestError> {
        let resource = secrets();
        match self.cluster.get(self.target(&resource)).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.failure == Failure::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn target<'a>(&'a self, resource: &'a Resource) -> Target<'a> {
        let namespace = Some(self.namespace.as_str());
        Target { resource, namespace, name: &self.name, subresource: None }
    }

    async fn create(&self, made: &Made) -> Result<(), RequestError> {
        let body = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/tls",
            "metadata": {
                "name": self.name,
                "namespace": self.namespace,
                "annotations": times(made.expires, None),
            },
            "data": content(made),
        });
        let (resource, namespace) = (secrets(), Some(self.namespace.as_str()));
        self.cluster.create(&resource, namespace, body.to_string().into()).await.map(drop)
    }

    /// Adds the next authority to the trusted ones, next to the current one.
    async fn prepare(
        &self,
        found: Option<&Object>,
        made: &Made,
        now: Timestamp,
    ) -> Result<(), RequestError> {
        let present = found.and_then(|it| data(it, "ca.crt")).unwrap_or_default();
        let bundle = format!("{}{}", last_certificate(&present), made.authority);
        let content = json!({
            "ca.crt": STANDARD.encode(bundle),
            "next.crt": STANDARD.encode(&made.chain),
            "next.key": STANDARD.encode(&made.key),
        });
        let expires = found.map(dates).and_then(|it| it.expires).unwrap_or(now);
        self.patch(found, &content, &times(expires, Some(now))).await
    }

    /// Puts the next certificate into use.
    async fn promote(&self, found: Option<&Object>) -> Result<(), RequestError> {
        let raw = |key: &str| found.map(|it| it.value()["data"][key].clone());
        let content = json!({
            "tls.crt": raw("next.crt"), "tls.key": raw("next.key"),
            "next.crt": null, "next.key": null,
        });
        let prepared = found.map(dates).and_then(|it| it.prepared).unwrap_or_default();
        self.patch(found, &content, &times(prepared + LIFE, None)).await
    }

    /// Changes the Secret, unless another writer has changed it meanwhile.
    async fn patch(
        &self,
        found: Option<&Object>,
        content: &Value,
        annotations: &Value,
    ) -> Result<(), RequestError> {
        let version = found.map(|it| it.resource_version().to_owned());
        let metadata = json!({"resourceVersion": version, "annotations": annotations});
        let body = json!({"metadata": metadata, "data": content}).to_string();
        let (resource, content) = (secrets(), PatchContent::Merge(body.into()));
        self.cluster.patch(self.target(&resource), content, Urgency::Urgent).await.map(drop)
    }
}

fn secrets() -> Resource {
    Resource {
        version: "v1".to_owned(),
        singular: "secret".to_owned(),
        namespaced: true,
        ..Resource::cluster_wide("", "secrets", "Secret")
    }
}

fn times(expires: Timestamp, prepared: Option<Timestamp>) -> Value {
    json!({EXPIRES: expires.to_string(), PREPARED: prepared.map(|it| it.to_string())})
}

fn dates(secret: &Object) -> Dates {
    let date = |key: &str| secret.annotation(key).and_then(|text| text.parse().ok());
    Dates { expires: date(EXPIRES), prepared: date(PREPARED) }
}

fn data(secret: &Object, key: &str) -> Option<String> {
    let bytes = STANDARD.decode(secret.value()["data"][key].as_str()?).ok()?;
    String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
}

fn content(made: &Made) -> Value {
    json!({
        "ca.crt": STANDARD.encode(&made.authority),
        "tls.crt": STANDARD.encode(&made.chain),
        "tls.key": STANDARD.encode(&made.key),
        "next.crt": null, "next.key": null,
    })
}

/// The last certificate of a bundle: the current authority.
fn last_certificate(bundle: &str) -> &str {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    bundle.rfind(BEGIN).map_or("", |start| &bundle[start..])
}

/// An authority, and a certificate that it has signed.
fn make(endpoint: &AdmissionEndpoint, now: Timestamp) -> Result<Made, rcgen::Error> {
    let expires = now + LIFE;
    let day = |at: Timestamp| {
        let date = at.to_zoned(jiff::tz::TimeZone::UTC).date();
        let number = |it: i8| it.unsigned_abs();
        rcgen::date_time_ymd(date.year().into(), number(date.month()), number(date.day()))
    };
    let dated = |mut params: CertificateParams| {
        // The clock of the cluster may be behind ours; dates are whole days.
        params.not_before = day(now - Duration::from_secs(24 * 3600));
        params.not_after = day(expires + Duration::from_secs(24 * 3600));
        params
    };
    let mut authority = dated(CertificateParams::new(Vec::new())?);
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name.push(rcgen::DnType::CommonName, "kopf webhooks");
    let authority_key = KeyPair::generate()?;
    let authority_pem = authority.self_signed(&authority_key)?.pem();
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate()?;
    let own = dated(CertificateParams::new(super::server::names(endpoint))?);
    let chain = own.signed_by(&key, &issuer)?.pem();
    Ok(Made { authority: authority_pem, chain, key: key.serialize_pem(), expires })
}

#[cfg(test)]
mod tests;
