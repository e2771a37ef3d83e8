//! The meaning of an error below HTTP: a certificate that is not trusted, or an unreachable server.

use std::error::Error;
use std::io::ErrorKind;

use crate::pool::Unconnected;

/// An error and its causes.
pub(crate) fn chain<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// Whether a certificate was rejected, by us or by the server.
pub(crate) fn is_certificate_rejected(error: &(dyn Error + 'static)) -> bool {
    use rustls::AlertDescription as Alert;
    use rustls::Error as Tls;
    if let Some(error) = error.downcast_ref::<Tls>() {
        return match error {
            Tls::InvalidCertificate(_) | Tls::NoCertificatesPresented => true,
            Tls::AlertReceived(alert) => matches!(
                alert,
                Alert::AccessDenied
                    | Alert::BadCertificate
                    | Alert::CertificateExpired
                    | Alert::CertificateRequired
                    | Alert::CertificateRevoked
                    | Alert::CertificateUnknown
                    | Alert::DecryptError
                    | Alert::UnknownCA
                    | Alert::UnsupportedCertificate
            ),
            _ => false,
        };
    }
    // The error inside an I/O error is not its source; its source is that error's source.
    let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    if inner.is_some_and(|inner| is_certificate_rejected(inner)) {
        return true;
    }
    error.source().is_some_and(is_certificate_rejected)
}

/// Whether no connection could be established at all, for other reasons than certificates.
pub(crate) fn is_unreached(error: &(dyn Error + 'static)) -> bool {
    if is_certificate_rejected(error) {
        return false;
    }
    chain(error).any(|error| {
        let client = error.downcast_ref::<hyper_util::client::legacy::Error>();
        let network = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        client.is_some_and(hyper_util::client::legacy::Error::is_connect)
            || error.is::<Unconnected>()
            || matches!(
                network,
                Some(
                    ErrorKind::ConnectionRefused
                        | ErrorKind::HostUnreachable
                        | ErrorKind::NetworkUnreachable
                )
            )
    })
}
