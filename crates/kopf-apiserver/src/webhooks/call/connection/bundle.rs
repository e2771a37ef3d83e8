//! Verifies the certificate of a webhook server with the bundle of its configuration, as Go does.
//!
//! Unlike webpki, Go accepts a certificate that is itself in the bundle, even if it is a CA
//! certificate: self-signed certificates are often created that way.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, RootCertStore};

/// Trusts the certificates of a bundle, and those signed by them.
#[derive(Debug)]
pub(super) struct BundleVerifier {
    /// `None` if the bundle has no usable certificates: then nothing is trusted.
    chains: Option<Arc<WebPkiServerVerifier>>,
    certificates: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl BundleVerifier {
    /// A verifier for a bundle in PEM.
    pub(super) fn new(
        pem: &[u8],
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, rustls::client::VerifierBuilderError> {
        let mut pem = pem;
        let certificates: Vec<_> = rustls_pemfile::certs(&mut pem).flatten().collect();
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates.iter().cloned());
        let chains = match roots.is_empty() {
            true => None,
            false => {
                let builder = WebPkiServerVerifier::builder_with_provider(
                    Arc::new(roots),
                    Arc::clone(&provider),
                );
                Some(builder.build()?)
            }
        };
        Ok(Self { chains, certificates, provider })
    }

    /// Makes the remaining checks for a certificate that is itself trusted.
    fn verify_known(
        certificate: &CertificateDer<'_>,
        server_name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let bad = |error| rustls::Error::InvalidCertificate(error);
        let (_, parsed) = x509_parser::parse_x509_certificate(certificate)
            .map_err(|_| bad(CertificateError::BadEncoding))?;
        let moment = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let validity = parsed.validity();
        if moment < validity.not_before.timestamp() || moment > validity.not_after.timestamp() {
            return Err(bad(CertificateError::Expired));
        }
        rustls::client::verify_server_name(
            &ParsedCertificate::try_from(certificate)?,
            server_name,
        )?;
        Ok(ServerCertVerified::assertion())
    }
}

impl ServerCertVerifier for BundleVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.certificates.iter().any(|known| known == end_entity) {
            return Self::verify_known(end_entity, server_name, now);
        }
        let Some(chains) = &self.chains else {
            return Err(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer));
        };
        chains.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests;
