//! Who sent a request: bearer tokens, impersonation, or the door's own identity.
//!
//! Refuses to decide what the user may do; that is authorization.

use std::collections::HashMap;

use http::HeaderMap;
use parking_lot::RwLock;

use crate::tokens::TokenIssuer;
use crate::{StatusError, User};

/// The known credentials of one server.
pub(crate) struct Authenticator {
    // Written by `add` and `remove`, read by every request with a bearer token.
    tokens: RwLock<HashMap<String, User>>,
    /// Signs and reads the tokens of service accounts.
    pub(crate) issuer: TokenIssuer,
}

/// What an impersonation asks for.
pub(crate) struct Impersonation {
    /// The identity to act as.
    pub(crate) user: User,
}

impl Authenticator {
    pub(crate) fn new(issuer: TokenIssuer) -> Self {
        Self { tokens: RwLock::new(HashMap::new()), issuer }
    }

    /// Makes a token known.
    pub(crate) fn add(&self, token: &str, user: User) {
        self.tokens.write().insert(token.to_owned(), user);
    }

    /// Makes a token unknown.
    pub(crate) fn remove(&self, token: &str) {
        self.tokens.write().remove(token);
    }

    /// The user behind a token.
    pub(crate) fn user_of_token(&self, token: &str) -> Option<User> {
        if let Some(user) = self.tokens.read().get(token) {
            return Some(user.clone());
        }
        self.issuer.user_of(token)
    }

    /// The user behind a request; `fallback` is whom the door takes for a request without
    /// credentials.
    pub(crate) fn authenticate(
        &self,
        headers: &HeaderMap,
        fallback: &User,
    ) -> Result<User, StatusError> {
        let header = headers.get(http::header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let Some(header) = header else { return Ok(fallback.clone()) };
        let token = header
            .split_once(' ')
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, token)| token.trim());
        let Some(token) = token else { return Ok(User::anonymous()) };
        let mut user = self.user_of_token(token).ok_or_else(StatusError::unauthorized)?;
        if !user.groups.iter().any(|group| group == "system:authenticated") {
            user.groups.push("system:authenticated".to_owned());
        }
        Ok(user)
    }
}

/// The identity that `Impersonate-*` headers ask for, if any.
pub(crate) fn impersonation(headers: &HeaderMap) -> Option<Impersonation> {
    let texts = |name: &str| -> Vec<String> {
        headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .map(str::to_owned)
            .collect()
    };
    let name = texts("impersonate-user").into_iter().next()?;
    let mut user = User { name, groups: texts("impersonate-group"), ..User::default() };
    user.uid = texts("impersonate-uid").into_iter().next().unwrap_or_default();
    if let Some(account) = user.name.strip_prefix("system:serviceaccount:")
        && user.groups.is_empty()
        && let Some((namespace, name)) = account.split_once(':')
    {
        user = User::service_account(namespace, name);
    }
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix("impersonate-extra-")
            && let Ok(value) = value.to_str()
        {
            user.extra.entry(key.to_owned()).or_default().push(value.to_owned());
        }
    }
    if user.name != "system:anonymous"
        && !user.groups.iter().any(|group| group == "system:authenticated")
    {
        user.groups.push("system:authenticated".to_owned());
    }
    Some(Impersonation { user })
}
