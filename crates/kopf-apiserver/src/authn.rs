//! Authentication: bearer tokens, impersonation, or the default identity of the transport.
//!
//! Does not decide what the user may do; that is authorization.

mod accounts;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use http::HeaderMap;
use jiff::Timestamp;
use parking_lot::RwLock;

use crate::store::Store;
use crate::tokens::{AUDIENCE, TokenIssuer};
use crate::{StatusError, User};

pub(crate) use accounts::{bind, lifetime, nominal_end};

/// The known credentials of one server.
pub(crate) struct Authenticator {
    // Written by `add` and `remove`, read by every request with a bearer token.
    tokens: RwLock<HashMap<String, Known>>,
    /// Signs and reads the tokens of service accounts.
    pub(crate) issuer: TokenIssuer,
}

/// The user behind a static token.
struct Known {
    user: User,
    /// The same user as the sender of a request.
    sender: Arc<User>,
}

/// The server state that tokens are checked against.
#[derive(Clone, Copy)]
pub(crate) struct Present<'a> {
    /// The objects that tokens are bound to.
    pub(crate) store: &'a Store,
    /// The current time.
    pub(crate) now: Timestamp,
}

/// A user, and the requested audiences that its token is valid for.
pub(crate) struct Identified {
    /// The user behind the token.
    pub(crate) user: User,
    /// The requested audiences that the token is valid for.
    pub(crate) audiences: Vec<String>,
}

/// A requested impersonation.
pub(crate) struct Impersonation {
    /// The identity to act as.
    pub(crate) user: User,
}

impl Authenticator {
    pub(crate) fn new(issuer: TokenIssuer) -> Self {
        Self { tokens: RwLock::new(HashMap::new()), issuer }
    }

    /// Adds a token.
    pub(crate) fn add(&self, token: &str, user: User) {
        let sender = Arc::new(authenticated(user.clone()));
        self.tokens.write().insert(token.to_owned(), Known { user, sender });
    }

    /// Removes a token.
    pub(crate) fn remove(&self, token: &str) {
        self.tokens.write().remove(token);
    }

    /// The user behind a token that is valid for one of `audiences`; the error says why there is
    /// none.
    pub(crate) fn identify(
        &self,
        token: &str,
        audiences: &[&str],
        present: Present<'_>,
    ) -> Result<Identified, String> {
        const UNKNOWN: &str = "invalid bearer token";
        if let Some(Known { user, .. }) = self.tokens.read().get(token) {
            // Tokens without an audience are meant for this server.
            if !audiences.contains(&AUDIENCE) {
                return Err(UNKNOWN.to_owned());
            }
            return Ok(Identified { user: user.clone(), audiences: vec![AUDIENCE.to_owned()] });
        }
        let claims = self.issuer.verify(token).ok_or(UNKNOWN)?;
        accounts::identify(&claims, audiences, present)
            .map_err(|problem| format!("[{UNKNOWN}, {problem}]"))
    }

    /// The user behind a request; `fallback` is the identity for a request without credentials.
    pub(crate) fn authenticate(
        &self,
        headers: &HeaderMap,
        fallback: &Arc<User>,
        present: Present<'_>,
    ) -> Result<Arc<User>, StatusError> {
        let header = headers.get(http::header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = match header {
            Some(header) => header
                .split_once(' ')
                .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
                .map(|(_, token)| Cow::Borrowed(token.trim())),
            None => match crate::websocket::bearer_token(headers) {
                Some(token) => Some(Cow::Owned(token)),
                None => return Ok(Arc::clone(fallback)),
            },
        };
        let Some(token) = token else { return Ok(Arc::new(User::anonymous())) };
        if let Some(Known { sender, .. }) = self.tokens.read().get(&*token) {
            return Ok(Arc::clone(sender));
        }
        let identified = self.identify(&token, &[AUDIENCE], present).map_err(|problem| {
            tracing::debug!(%problem, "a request is not authenticated");
            StatusError::unauthorized()
        })?;
        Ok(Arc::new(authenticated(identified.user)))
    }
}

/// Adds the group of all users that have been authenticated.
fn authenticated(mut user: User) -> User {
    const GROUP: &str = "system:authenticated";
    if !user.groups.iter().any(|group| group == GROUP) {
        user.groups.push(GROUP.to_owned());
    }
    user
}

/// Whether any `Impersonate-*` header is set; most requests have none.
fn impersonates(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| name.as_str().starts_with("impersonate-"))
}

/// The values of a header that may be repeated.
fn texts(headers: &HeaderMap, name: &str) -> Vec<String> {
    let values = headers.get_all(name).iter();
    values.filter_map(|value| value.to_str().ok()).map(str::to_owned).collect()
}

/// The `Impersonate-*` headers of a request that names no user, as Go prints them. Upstream answers
/// such requests with an internal error.
pub(crate) fn impersonation_without_user(headers: &HeaderMap) -> Option<String> {
    const VERSION: &str = "authentication.k8s.io/v1";
    if !impersonates(headers) {
        return None;
    }
    if texts(headers, "impersonate-user").first().is_some_and(|name| !name.is_empty()) {
        return None;
    }
    let mut wanted: Vec<String> = texts(headers, "impersonate-group")
        .iter()
        .map(|name| format!("{{Group  {name}    }}"))
        .collect();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix("impersonate-extra-") {
            let value = value.to_str().unwrap_or_default();
            wanted.push(format!("{{UserExtra  {value}  {VERSION}  {}}}", extra_key(key)));
        }
    }
    let uid = texts(headers, "impersonate-uid").into_iter().next().unwrap_or_default();
    if !uid.is_empty() {
        wanted.push(format!("{{UID  {uid}  {VERSION}  }}"));
    }
    (!wanted.is_empty()).then(|| wanted.join(" "))
}

/// Keys of extra attributes are percent-encoded, since headers cannot contain every character.
fn extra_key(key: &str) -> String {
    crate::query::decode_path(key).into_owned()
}

/// The identity requested by `Impersonate-*` headers, if any.
pub(crate) fn impersonation(headers: &HeaderMap) -> Option<Impersonation> {
    if !impersonates(headers) {
        return None;
    }
    let first =
        |name: &str| texts(headers, name).into_iter().next().filter(|text| !text.is_empty());
    let name = first("impersonate-user")?;
    let groups = texts(headers, "impersonate-group");
    let uid = first("impersonate-uid").unwrap_or_default();
    let mut user = User { name, groups, uid, ..User::default() };
    if let Some(account) = user.name.strip_prefix("system:serviceaccount:")
        && user.groups.is_empty()
        && let Some((namespace, name)) = account.split_once(':')
    {
        user = User { uid: user.uid, ..User::service_account(namespace, name) };
    }
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix("impersonate-extra-")
            && let Ok(value) = value.to_str()
        {
            user.extra.entry(extra_key(key)).or_default().push(value.to_owned());
        }
    }
    if user.name != "system:anonymous"
        && !user.groups.iter().any(|group| group == "system:authenticated")
    {
        user.groups.push("system:authenticated".to_owned());
    }
    Some(Impersonation { user })
}
