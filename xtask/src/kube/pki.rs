//! Throw-away certificates for one control plane.
//!
//! Defines the names that the serving certificate covers; writes PEM files only.

use std::fs;

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use super::state::State;

const SERVING_NAMES: [&str; 7] = [
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "127.0.0.1",
    "10.96.0.1",
];

/// Writes `ca.crt`, `ca.key`, `serving.crt`, `serving.key`, `sa.pub` and `sa.key`.
pub(super) fn write(state: &State) -> Result<()> {
    let ca_key = KeyPair::generate()?;
    let mut ca = named("kopf-oracle-ca", &[])?;
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let ca_certificate = ca.self_signed(&ca_key)?;
    save(state, "ca.crt", &ca_certificate.pem())?;
    save(state, "ca.key", &ca_key.serialize_pem())?;

    let issuer = Issuer::new(ca, ca_key);
    let serving_key = KeyPair::generate()?;
    let mut serving = named("kube-apiserver", &SERVING_NAMES)?;
    serving.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    save(state, "serving.crt", &serving.signed_by(&serving_key, &issuer)?.pem())?;
    save(state, "serving.key", &serving_key.serialize_pem())?;
    let account_key = KeyPair::generate()?;
    save(state, "sa.pub", &account_key.public_key_pem())?;
    save(state, "sa.key", &account_key.serialize_pem())
}

fn named(name: &str, alternatives: &[&str]) -> Result<CertificateParams> {
    let alternatives: Vec<String> = alternatives.iter().map(ToString::to_string).collect();
    let mut parameters = CertificateParams::new(alternatives)?;
    parameters.distinguished_name.push(DnType::CommonName, name);
    Ok(parameters)
}

fn save(state: &State, name: &str, pem: &str) -> Result<()> {
    fs::write(state.file(name), pem).with_context(|| format!("could not write `{name}`"))
}
