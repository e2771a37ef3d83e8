//! The pages, as built from `ui/` by `cargo xtask ui`.

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use http_body_util::Full;

/// Path, media type and content of each file.
const FILES: [(&str, &str, &[u8]); 4] = [
    ("/", "text/html; charset=utf-8", include_bytes!("../assets/index.html")),
    ("/app.js", "text/javascript; charset=utf-8", include_bytes!("../assets/app.js")),
    ("/app.css", "text/css; charset=utf-8", include_bytes!("../assets/app.css")),
    ("/icon.svg", "image/svg+xml", include_bytes!("../assets/icon.svg")),
];

/// Nothing from elsewhere, no embedding in other pages, no scripts except our own file.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// The file at a path.
pub(crate) fn file(path: &str) -> Option<Response<Full<Bytes>>> {
    let (_, kind, content) = FILES.iter().find(|(known, ..)| *known == path)?;
    let mut response = Response::new(Full::new(Bytes::from_static(content)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Some(response)
}

/// Adds the security headers of every response.
pub(crate) fn harden(response: &mut Response<Full<Bytes>>) {
    let headers = response.headers_mut();
    let values = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in values {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests;
