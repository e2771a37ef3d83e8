//! Tokens of service accounts: their audience, their expiry, and the objects that they are bound
//! to.
//!
//! Checks claims whose signature has already been verified. Rules, leeway and messages are
//! upstream's.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Identified, Present};
use crate::fields::{number, text, texts};
use crate::tokens::AUDIENCE;
use crate::{StatusError, Stored, User, meta};

/// The issuer of tokens that are kept in Secrets.
const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";
/// The allowed clock skew: tokens that have just expired or whose object was just deleted still
/// count.
const LEEWAY_SECONDS: i64 = 60;
/// The error for tokens whose object is gone; upstream gives no details.
const INVALIDATED: &str = "service account token has been invalidated";

/// The service account behind claims; the error says why they are not valid, or no longer valid.
pub(super) fn identify(
    claims: &Value,
    audiences: &[&str],
    present: Present<'_>,
) -> Result<Identified, String> {
    let is_legacy = text(claims, &["iss"]) == LEGACY_ISSUER;
    // A token from a Secret names no audience: it is for the server.
    let meant_for = if is_legacy { vec![AUDIENCE] } else { texts(claims, &["aud"]) };
    let common: Vec<String> = audiences
        .iter()
        .filter(|one| meant_for.contains(one))
        .map(|one| (*one).to_owned())
        .collect();
    if common.is_empty() {
        return Err(format!(
            "token audiences {} is invalid for the target audiences {}",
            quoted(&meant_for),
            quoted(audiences)
        ));
    }
    check_time(claims, present.now)?;
    let shaped;
    let claims = if is_legacy {
        shaped = of_secret(claims, present)?;
        &shaped
    } else {
        claims
    };
    let private = &claims["kubernetes.io"];
    let (namespace, account) = (text(private, &["namespace"]), &private["serviceaccount"]);
    let name = text(account, &["name"]);
    let stored = present
        .store
        .get("serviceaccounts", namespace, name)
        .ok_or_else(|| format!("serviceaccounts {name:?} not found"))?;
    if was_deleted(&stored, present.now) {
        return Err(format!("service account {namespace}/{name} has been deleted"));
    }
    let claimed = text(account, &["uid"]);
    if stored.uid() != claimed {
        let uid = stored.uid();
        return Err(format!("service account UID ({uid}) does not match claim ({claimed})"));
    }
    for (kind, table, namespace) in
        [("secret", "secrets", namespace), ("pod", "pods", namespace), ("node", "nodes", "")]
    {
        // The node of a pod is only informational; it need not exist.
        let is_informational = kind == "node" && !private["pod"].is_null();
        if !private[kind].is_null() && !is_informational {
            check_object(kind, &private[kind], table, namespace, present)?;
        }
    }
    let mut user = User::service_account(namespace, name);
    claimed.clone_into(&mut user.uid);
    user.extra = extra(claims);
    Ok(Identified { user, audiences: common })
}

/// The claims of a token that is kept in a Secret, in the form of other tokens. The Secret must still
/// have the token.
fn of_secret(claims: &Value, present: Present<'_>) -> Result<Value, String> {
    let part = |name: &str| text(claims, &[&format!("kubernetes.io/serviceaccount/{name}")]);
    let (namespace, name) = (part("namespace"), part("secret.name"));
    let stored = present.store.get("secrets", namespace, name);
    let stored = stored.filter(|stored| !was_deleted(stored, present.now)).ok_or(INVALIDATED)?;
    let token = text(stored.content(), &["data", "token"]).to_owned();
    let kept = STANDARD.decode(token).ok().and_then(|token| claims_in(&token));
    if kept.as_ref() != Some(claims) {
        return Err("token does not match server's copy".to_owned());
    }
    let account =
        json!({ "name": part("service-account.name"), "uid": part("service-account.uid") });
    Ok(json!({ "kubernetes.io": { "namespace": namespace, "serviceaccount": account } }))
}

/// The claims of a token, whose signature is not checked.
fn claims_in(token: &[u8]) -> Option<Value> {
    let payload = token.split(|byte| *byte == b'.').nth(1)?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()
}

fn check_time(claims: &Value, now: Timestamp) -> Result<(), String> {
    let second = |claim: &str| number(claims, &[claim]);
    if second("nbf").is_some_and(|start| now.as_second() + LEEWAY_SECONDS < start) {
        return Err("service account token is not valid yet".to_owned());
    }
    if second("exp").is_some_and(|end| now.as_second() - LEEWAY_SECONDS > end) {
        return Err("service account token has expired".to_owned());
    }
    Ok(())
}

fn check_object(
    kind: &str,
    claim: &Value,
    table: &str,
    namespace: &str,
    present: Present<'_>,
) -> Result<(), String> {
    let stored = present.store.get(table, namespace, text(claim, &["name"]));
    let stored = stored.filter(|stored| !was_deleted(stored, present.now)).ok_or(INVALIDATED)?;
    let claimed = text(claim, &["uid"]);
    if stored.uid() != claimed {
        return Err(format!(
            "{kind} UID ({}) does not match service account {kind} ref claim ({claimed})",
            stored.uid()
        ));
    }
    Ok(())
}

fn was_deleted(stored: &Stored, now: Timestamp) -> bool {
    let deleted: Option<Timestamp> = stored.metadata_text("deletionTimestamp").parse().ok();
    deleted.is_some_and(|time| time.as_second() < now.as_second() - LEEWAY_SECONDS)
}

/// The extra attributes of a token.
fn extra(claims: &Value) -> std::collections::BTreeMap<String, Vec<String>> {
    let private = &claims["kubernetes.io"];
    let mut extra = std::collections::BTreeMap::new();
    let mut tell = |key: &str, value: &str| {
        if !value.is_empty() {
            extra.insert(format!("authentication.kubernetes.io/{key}"), vec![value.to_owned()]);
        }
    };
    let id = text(claims, &["jti"]);
    if !id.is_empty() {
        tell("credential-id", &format!("JTI={id}"));
    }
    for kind in ["pod", "node"] {
        for field in ["name", "uid"] {
            tell(&format!("{kind}-{field}"), text(private, &[kind, field]));
        }
    }
    extra
}

/// A list of strings as Go prints it with `%q`.
fn quoted(texts: &[&str]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", quoted.join(" "))
}

/// The object that a token is bound to, in the form of claims.
#[derive(Default)]
pub(crate) struct Bound {
    /// `pod`, `secret` or `node` with name and uid, and the node of a pod.
    pub(crate) claims: Vec<(&'static str, Value)>,
}

impl Bound {
    /// Whether the token is bound to a pod.
    pub(crate) fn is_pod(&self) -> bool {
        self.claims.iter().any(|(kind, _)| *kind == "pod")
    }
}

/// Finds the object that a service account token should be bound to.
pub(crate) fn bind(
    reference: &Value,
    namespace: &str,
    account: &str,
    store: &crate::store::Store,
) -> Result<Bound, StatusError> {
    if reference.is_null() {
        return Ok(Bound::default());
    }
    let (kind, version) = (text(reference, &["kind"]), text(reference, &["apiVersion"]));
    let name = text(reference, &["name"]);
    let (claim, table, namespace) = match (kind, version) {
        ("Pod", "v1") => ("pod", "pods", namespace),
        ("Secret", "v1") => ("secret", "secrets", namespace),
        ("Node", "v1") => ("node", "nodes", ""),
        _ => {
            let (group, version) = version.split_once('/').unwrap_or(("", version));
            let problem =
                format!("cannot bind token to object of type {group}/{version}, Kind={kind}");
            return Err(StatusError::bad_request(problem));
        }
    };
    let stored =
        store.get(table, namespace, name).ok_or_else(|| StatusError::not_found("", table, name))?;
    let content = stored.content();
    if claim == "pod" && text(content, &["spec", "serviceAccountName"]) != account {
        return Err(StatusError::bad_request(format!(
            "cannot bind token for serviceaccount {account:?} to pod running with different \
             serviceaccount name."
        )));
    }
    let wanted = text(reference, &["uid"]);
    if !wanted.is_empty() && wanted != stored.uid() {
        let problem = format!(
            "the UID in the bound object reference ({wanted}) does not match the UID in record. \
             The object might have been deleted and then recreated"
        );
        return Err(StatusError::conflict("", kind, name, &problem));
    }
    let mut claims = vec![(claim, json!({ "name": name, "uid": stored.uid() }))];
    let node = text(content, &["spec", "nodeName"]);
    if claim == "pod" && !node.is_empty() {
        let known = store.get("nodes", "", node);
        let uid = known.as_ref().map_or("", |node| node.uid());
        claims.push(("node", json!({ "name": node, "uid": uid })));
    }
    Ok(Bound { claims })
}

/// The expiry of a token, and the time after which its use gives a warning. Tokens in pods are
/// valid for a year, so that programs that do not reload them keep working.
pub(crate) fn lifetime(seconds: i64, is_in_pod: bool, now: Timestamp) -> (Timestamp, Option<i64>) {
    /// The default lifetime that kubelets request.
    const PROJECTED_SECONDS: i64 = 3607;
    const EXTENDED_SECONDS: i64 = 365 * 24 * 3600;
    let after = |seconds| now.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(now);
    match seconds == PROJECTED_SECONDS && is_in_pod {
        true => (after(EXTENDED_SECONDS), Some(after(seconds).as_second())),
        false => (after(seconds), None),
    }
}

/// The time as the API writes it.
pub(crate) fn nominal_end(seconds: i64, now: Timestamp) -> String {
    meta::format_time(now.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(now))
}
