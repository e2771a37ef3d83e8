//! Rules of certificate signing requests. Signatures are not verified.

use base64::Engine as _;
use serde_json::Value;

use super::Problems;
use crate::fields::{is_empty, list, text};
use crate::names::subdomain_problems;

/// The minimum lifetime of a certificate that can be requested, in seconds.
const SECONDS_MIN: i64 = 600;

const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// Rules of a new request.
pub(super) fn request(spec: &Value, problems: &mut Problems) {
    let bytes = base64::engine::general_purpose::STANDARD.decode(text(spec, "request"));
    let bytes = bytes.unwrap_or_default();
    if let Err(problem) = encoded_request(&bytes) {
        let shown: Vec<String> = bytes.iter().map(|byte| format!("{byte:#x}")).collect();
        let shown = format!("[]byte{{{}}}", shown.join(", "));
        problems.invalid_text("spec.request", &shown, problem);
    }
    if is_empty(spec, "usages") {
        problems.required("spec.usages", "");
    }
    let usages = list(spec, "usages");
    for (index, usage) in usages.iter().enumerate() {
        problems.one_of(&format!("spec.usages[{index}]"), usage, &USAGES);
    }
    for (index, usage) in usages.iter().enumerate() {
        if usages[..index].contains(usage) {
            problems.duplicate(&format!("spec.usages[{index}]"), usage);
        }
    }
    signer(&spec["signerName"], problems);
    if spec["expirationSeconds"].as_i64().is_some_and(|seconds| seconds < SECONDS_MIN) {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        problems.invalid("spec.expirationSeconds", &spec["expirationSeconds"], detail);
    }
}

/// Checks for a domain and a path of at least one part.
fn signer(name: &Value, problems: &mut Problems) {
    let field = "spec.signerName";
    let given = name.as_str().unwrap_or_default();
    if given.is_empty() {
        problems.required(field, "");
        return;
    }
    let parts: Option<(&str, &str)> = given.split_once('/');
    let is_path = |path: &str| path.split('/').all(|part| !part.is_empty());
    let is_right = parts.is_some_and(|(domain, path)| {
        domain.contains('.') && subdomain_problems(domain).is_empty() && is_path(path)
    });
    if !is_right {
        let detail = "must be a fully qualified domain and path of the form \
                      'example.com/signer-name'";
        problems.invalid(field, name, detail);
    }
}

/// Checks that there is a PEM block that looks like a request.
fn encoded_request(pem: &[u8]) -> Result<(), &'static str> {
    const START: &str = "-----BEGIN CERTIFICATE REQUEST-----";
    const END: &str = "-----END CERTIFICATE REQUEST-----";
    let wrong = "PEM block type must be CERTIFICATE REQUEST";
    let text = std::str::from_utf8(pem).map_err(|_| wrong)?;
    let (_, rest) = text.split_once(START).ok_or(wrong)?;
    let (body, _) = rest.split_once(END).ok_or(wrong)?;
    let body: String = body.split_whitespace().collect();
    let der = base64::engine::general_purpose::STANDARD.decode(body).map_err(|_| wrong)?;
    sequence(&der)
}

/// Checks that the bytes are one sequence, judging by its length.
fn sequence(der: &[u8]) -> Result<(), &'static str> {
    const TRUNCATED: &str = "asn1: syntax error: data truncated";
    let [tag, length, rest @ ..] = der else { return Err(TRUNCATED) };
    if *tag != 0x30 {
        return Err("asn1: structure error: tags don't match");
    }
    let (length, content) = match usize::from(*length) {
        short @ 0..0x80 => (short, rest),
        long => {
            let count = long & 0x7f;
            let digits = rest.get(..count).filter(|_| count <= 4).ok_or(TRUNCATED)?;
            let length = digits.iter().fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte));
            (length, &rest[count..])
        }
    };
    match content.len() {
        found if found < length => Err(TRUNCATED),
        found if found > length => Err("asn1: syntax error: trailing data"),
        _ => Ok(()),
    }
}
