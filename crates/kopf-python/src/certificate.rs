//! Self-signed certificates of webhook servers, like those that Kopf makes.

use std::net::IpAddr;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};

/// A certificate that is its own CA, and its private key, both in PEM. The first name is that of the
/// subject. Addresses are listed as names too: some clients look for them there.
pub(crate) fn build(hostnames: Vec<String>) -> Result<(String, String), rcgen::Error> {
    let common_name = hostnames.first().cloned().unwrap_or_default();
    let addresses: Vec<String> =
        hostnames.iter().filter(|name| name.parse::<IpAddr>().is_ok()).cloned().collect();
    let mut params = CertificateParams::new(hostnames)?;
    for address in addresses {
        params.subject_alt_names.push(SanType::DnsName(address.try_into()?));
    }
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyEncipherment,
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
    ];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok((certificate.pem(), key.serialize_pem()))
}
