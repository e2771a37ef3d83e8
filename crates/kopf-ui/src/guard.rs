//! Access control: checks the `Host`, the token and the method of requests.
//!
//! Pure. A page of another site cannot get through: it has no token, its `Origin` differs, and a
//! DNS name that is rebound to this machine is not accepted.

use http::{HeaderMap, Method, header};

/// Why a request is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejection {
    /// The request is for another host.
    Host,
    /// The request comes from another site.
    Origin,
    /// The token is missing or wrong.
    Token,
    /// The method does not match the path: a change with GET, or a query with another method.
    Method,
}

/// The requirements for a request.
pub(crate) struct Guard {
    /// The port of the server.
    pub(crate) port: u16,
    /// The secret in the printed address.
    pub(crate) token: String,
}

impl Guard {
    /// Checks that the request is for this server: a local address with our port.
    pub(crate) fn check_host(&self, headers: &HeaderMap) -> Result<(), Rejection> {
        let host = headers.get(header::HOST).and_then(|value| value.to_str().ok());
        let is_ours = host.is_some_and(|host| {
            let names = ["127.0.0.1", "localhost", "[::1]"];
            names.iter().any(|name| {
                let rest = host.strip_prefix(name).and_then(|rest| rest.strip_prefix(':'));
                rest.and_then(|port| port.parse().ok()) == Some(self.port)
            })
        });
        if is_ours { Ok(()) } else { Err(Rejection::Host) }
    }

    /// Checks that a query or a change is allowed.
    pub(crate) fn check_caller(
        &self,
        method: &Method,
        headers: &HeaderMap,
        is_change: bool,
    ) -> Result<(), Rejection> {
        if is_change != (method == Method::POST) || (!is_change && method != Method::GET) {
            return Err(Rejection::Method);
        }
        // Browsers send it with every change, and with requests of other sites.
        if let Some(origin) = headers.get(header::ORIGIN) {
            let host = headers.get(header::HOST).map(|host| host.as_bytes()).unwrap_or_default();
            if origin.as_bytes().strip_prefix(b"http://") != Some(host) {
                return Err(Rejection::Origin);
            }
        }
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = given.and_then(|text| text.strip_prefix("Bearer ")).unwrap_or_default();
        if is_same(given, &self.token) { Ok(()) } else { Err(Rejection::Token) }
    }
}

/// Compares secrets in constant time.
fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let differing = one.iter().zip(other).fold(0, |bits, (a, b)| bits | (a ^ b));
    one.len() == other.len() && differing == 0
}

#[cfg(test)]
mod tests;
