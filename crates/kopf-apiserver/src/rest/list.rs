//! Reading many objects: versions, selectors, pages.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::Call;
use crate::encode::ListMeta;
use crate::kinds::Kind;
use crate::query::Query;
use crate::selector::{Selector, ShardSelector};
use crate::store::{ObjectKey, Snapshot};
use crate::{Cause, FieldError, StatusError, Stored, convert};

/// The options of a list.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListRequest {
    /// The selected objects.
    pub(crate) selector: Selector,
    /// The selected share of them.
    pub(crate) shards: ShardSelector,
    /// The requested version; `None` if unset.
    pub(crate) resource_version: Option<u64>,
    /// Whether exactly that version is requested (`Exact`).
    pub(crate) exact: bool,
    /// The page size; 0 means everything.
    pub(crate) limit: usize,
    /// The token of the page to continue with.
    pub(crate) continue_token: String,
}

/// The objects of a list.
pub(crate) struct Listed {
    /// The selected objects.
    pub(crate) items: Vec<Arc<Stored>>,
    /// Version, next page, remaining.
    pub(crate) meta: ListMeta,
}

impl ListRequest {
    /// Reads the options and checks their combination.
    pub(crate) fn parse(call: &Call, query: &Query) -> Result<Self, StatusError> {
        let selector = Selector::parse(
            query.text("labelSelector"),
            query.text("fieldSelector"),
            &call.resource,
            Kind::of(&call.resource).selectable_fields,
        )?;
        let version = query.text("resourceVersion");
        let version_match = query.text("resourceVersionMatch");
        let continue_token = query.text("continue").to_owned();
        check_options(query, version, version_match, &continue_token)?;
        parse_number(query, "timeoutSeconds")?;
        Ok(Self {
            selector,
            shards: parse_shards(query)?,
            resource_version: parse_version(version).map_err(|error| {
                StatusError::bad_request(format!("invalid resource version: {}", error.message))
            })?,
            exact: version_match == "Exact",
            limit: usize::try_from(parse_number(query, "limit")?.unwrap_or(0)).unwrap_or(0),
            continue_token,
        })
    }
}

/// Parses a version number; `None` if unset, upstream's 500 if it is invalid.
pub(crate) fn parse_version(text: &str) -> Result<Option<u64>, StatusError> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        let problem = format!(
            "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: \
             invalid syntax"
        );
        StatusError::new(500, "", problem)
    })
}

/// The requested shards; upstream's 500 if they are invalid.
pub(super) fn parse_shards(query: &Query) -> Result<ShardSelector, StatusError> {
    ShardSelector::parse(query.text("shardSelector"))
        .map_err(|problem| StatusError::new(500, "", problem))
}

/// A number in a query; 400 if it is invalid.
pub(crate) fn parse_number(query: &Query, key: &str) -> Result<Option<i64>, StatusError> {
    match query.text(key) {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| {
            let problem = format!("strconv.ParseInt: parsing {text:?}: invalid syntax");
            StatusError::bad_request(problem)
        }),
    }
}

fn check_options(
    query: &Query,
    version: &str,
    version_match: &str,
    continue_token: &str,
) -> Result<(), StatusError> {
    let mut errors = Vec::new();
    if query.get("sendInitialEvents").is_some_and(|value| !value.is_empty()) {
        errors.push(FieldError::forbidden(
            "sendInitialEvents",
            "sendInitialEvents is forbidden for list",
        ));
    }
    if !version_match.is_empty() {
        let field = "resourceVersionMatch";
        if version.is_empty() {
            let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            errors.push(FieldError::forbidden(field, detail));
        }
        if !continue_token.is_empty() {
            let detail = "resourceVersionMatch is forbidden when continue is provided";
            errors.push(FieldError::forbidden(field, detail));
        }
        if !matches!(version_match, "Exact" | "NotOlderThan") {
            let supported = &["Exact", "NotOlderThan", ""];
            errors.push(FieldError::not_supported(field, &version_match.into(), supported));
        }
        if version_match == "Exact" && version == "0" {
            let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            errors.push(FieldError::forbidden(field, detail));
        }
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(StatusError::invalid("meta.k8s.io", "ListOptions", "", &errors))
}

/// The snapshot for a read that requests a state "not older than" a version.
pub(crate) fn read_version(
    call: &Call,
    resource_version: Option<u64>,
) -> Result<Snapshot, StatusError> {
    let snapshot = call.inner.store.snapshot();
    let current = snapshot.resource_version();
    match resource_version {
        Some(wanted) if wanted > current => Err(too_large(wanted, current)),
        _ => Ok(snapshot),
    }
}

fn too_large(wanted: u64, current: u64) -> StatusError {
    let message = format!("Timeout: Too large resource version: {wanted}, current: {current}");
    let mut error = StatusError::new(504, "Timeout", message).with_cause(Cause {
        reason: "ResourceVersionTooLarge".to_owned(),
        message: "Too large resource version".to_owned(),
        field: String::new(),
    });
    if let Some(details) = &mut error.details {
        details.retry_after_seconds = 1;
    }
    error
}

const CONTINUE_EXPIRED: &str = "The provided continue parameter is too old to display a \
    consistent list result. You can start a new list without the continue parameter, or use the \
    continue token in this response to retrieve the remainder of the results. Continuing with the \
    provided token results in an inconsistent list - objects that were created, modified, or \
    deleted between the time the first chunk was returned and now may show up in the list.";

/// Lists the objects that the call names, in the requested version.
pub(crate) async fn list(call: &Call, request: &ListRequest) -> Result<Listed, StatusError> {
    let namespace = call.namespace();
    let (snapshot, after) = if request.continue_token.is_empty() {
        (first_page(call, request)?, None)
    } else {
        let (snapshot, place) = next_page(call, request, namespace)?;
        (snapshot, Some(place))
    };
    let page = Page { call, request, snapshot: &snapshot, after: after.as_ref() };
    let (inner, resource) = (&call.inner, &call.resource);
    // A webhook may change fields that selectors use.
    if !request.selector.is_empty() && convert::is_rewritten(resource) {
        let (keys, found): (Vec<_>, Vec<_>) = page.candidates().unzip();
        let found = convert::served_all(inner, resource, found).await?;
        return Ok(page.fill(keys.into_iter().zip(found)));
    }
    let mut listed = match page.named() {
        Some(items) => Listed { items, meta: page.meta() },
        None => page.fill(page.candidates()),
    };
    listed.items = convert::served_all(inner, resource, listed.items).await?;
    Ok(listed)
}

/// Everything needed to build one page of a list.
struct Page<'a> {
    call: &'a Call,
    request: &'a ListRequest,
    snapshot: &'a Snapshot,
    after: Option<&'a Place>,
}

impl<'a> Page<'a> {
    fn meta(&self) -> ListMeta {
        let exact = self.request.resource_version.filter(|_| self.request.exact);
        let resource_version = exact.unwrap_or_else(|| self.snapshot.resource_version());
        let shards = self.request.shards.canonical().filter(|_| !self.call.resource.is_custom());
        ListMeta { resource_version, shards, ..ListMeta::default() }
    }

    /// The object that a selector requests by name, if any.
    fn named(&self) -> Option<Vec<Arc<Stored>>> {
        let (namespace, selector) = (self.call.namespace(), &self.request.selector);
        let is_unique = !namespace.is_empty() || !self.call.resource.namespaced;
        let name = selector.name().filter(|_| is_unique && self.after.is_none())?;
        let found = self.snapshot.get(&self.call.resource.table, namespace, name);
        let shards = &self.request.shards;
        let is_selected = |stored: &Arc<Stored>| {
            shards.matches(stored.encoded()) && selector.matches_stored(stored)
        };
        Some(found.filter(is_selected).into_iter().collect())
    }

    /// All objects from the start of the page.
    fn candidates(&self) -> impl Iterator<Item = (&'a ObjectKey, Arc<Stored>)> + use<'a> {
        let after = self.after.map(|place| &place.key);
        let shards = Some(&self.request.shards).filter(|shards| !shards.is_empty());
        self.snapshot
            .list_from(&self.call.resource.table, self.call.namespace(), after)
            .filter(move |(_, stored)| shards.is_none_or(|it| it.matches(stored.encoded())))
    }

    /// The page: as many selected candidates as fit.
    fn fill(&self, mut rest: impl Iterator<Item = (&'a ObjectKey, Arc<Stored>)>) -> Listed {
        let (request, snapshot) = (self.request, self.snapshot);
        let (table, namespace) = (&self.call.resource.table, self.call.namespace());
        // A read from the cache ignores the page size, as upstream's watch cache does.
        let limit = if request.resource_version == Some(0) { 0 } else { request.limit };
        let mut meta = self.meta();
        if limit == 0 && request.selector.is_empty() {
            return Listed { items: rest.map(|(_, stored)| stored).collect(), meta };
        }
        let mut items = Vec::new();
        let version = i64::try_from(meta.resource_version).unwrap_or(i64::MAX);
        while let Some((key, stored)) = rest.next() {
            if !request.selector.matches_stored(&stored) {
                continue;
            }
            items.push(match request.selector.is_empty() {
                true => stored,
                // A second handle, so that the decoded tree can be dropped.
                false => Arc::new(Stored::from(stored.packed())),
            });
            if limit == 0 || items.len() < limit {
                continue;
            }
            if request.selector.is_empty() && request.shards.is_empty() {
                let before = self.after.map_or(Some(0), |place| place.seen);
                let seen = before.map(|before| before + items.len());
                let total = snapshot.count(table, namespace);
                let remaining =
                    seen.map_or_else(|| rest.count(), |seen| total.saturating_sub(seen));
                if remaining > 0 {
                    meta.remaining = Some(remaining as u64);
                    meta.continue_token = token(version, key, namespace, seen);
                }
            } else if rest.next().is_some() {
                // As upstream, which does not look whether any of the rest is selected.
                meta.continue_token = token(version, key, namespace, None);
            }
            break;
        }
        if !meta.continue_token.is_empty() {
            self.call.inner.store.keep_for_pages(snapshot);
        }
        Listed { items, meta }
    }
}

/// Where a page starts.
struct Place {
    /// Starts after this object.
    key: ObjectKey,
    /// The number of objects on previous pages, if known.
    seen: Option<usize>,
}

fn first_page(call: &Call, request: &ListRequest) -> Result<Snapshot, StatusError> {
    let current = call.inner.store.snapshot().resource_version();
    if request.exact && request.resource_version.is_some_and(|version| version > current) {
        let problem = "etcdserver: mvcc: required revision is a future revision";
        return Err(StatusError::new(500, "", problem));
    }
    let latest = read_version(call, request.resource_version)?;
    let Some(version) = request.resource_version.filter(|_| request.exact) else {
        return Ok(latest);
    };
    call.inner.store.snapshot_at(version).ok_or_else(|| {
        StatusError::expired("The resourceVersion for the provided list is too old.")
    })
}

fn next_page(
    call: &Call,
    request: &ListRequest,
    namespace: &str,
) -> Result<(Snapshot, Place), StatusError> {
    if request.resource_version.is_some_and(|version| version != 0) {
        return Err(StatusError::bad_request(
            "specifying resource version is not allowed when using continue",
        ));
    }
    let (version, start, seen) = parse_token(&request.continue_token).map_err(|problem| {
        StatusError::bad_request(format!("invalid continue token: {problem}"))
    })?;
    let key = match start.split_once('/') {
        Some((inner, name)) if namespace.is_empty() => ObjectKey::new(inner, name),
        _ => ObjectKey::new(namespace, &start),
    };
    let snapshot = if version < 0 {
        Some(call.inner.store.snapshot())
    } else {
        call.inner.store.snapshot_at(u64::try_from(version).unwrap_or(0))
    };
    let snapshot = snapshot.ok_or_else(|| {
        let mut error = StatusError::expired(CONTINUE_EXPIRED);
        error.continue_token = Some(token(LATEST, &key, namespace, None).into());
        error
    })?;
    // The count does not apply to another state than the one that was counted.
    Ok((snapshot, Place { key, seen: seen.filter(|_| version >= 0) }))
}

/// The version in tokens that means the newest state.
const LATEST: i64 = -1;

/// `{v, rv, start, seen}` in URL-safe base64; the next page starts after `start`.
fn token(version: i64, last: &ObjectKey, namespace: &str, seen: Option<usize>) -> String {
    let start = if namespace.is_empty() && !last.namespace.is_empty() {
        format!("{}/{}\0", last.namespace, last.name)
    } else {
        format!("{}\0", last.name)
    };
    let mut token = json!({ "v": "meta.k8s.io/v1", "rv": version, "start": start });
    if let Some(seen) = seen {
        token["seen"] = seen.into();
    }
    URL_SAFE_NO_PAD.encode(token.to_string())
}

fn parse_token(token: &str) -> Result<(i64, String, Option<usize>), String> {
    let bytes = URL_SAFE_NO_PAD.decode(token.trim_end_matches('=')).map_err(|error| {
        let offset = match error {
            base64::DecodeError::InvalidByte(offset, _)
            | base64::DecodeError::InvalidLastSymbol(offset, _) => offset,
            base64::DecodeError::InvalidLength(length) => length / 4 * 4,
            base64::DecodeError::InvalidPadding => token.len(),
        };
        format!("continue key is not valid: illegal base64 data at input byte {offset}")
    })?;
    let value: Value = crate::schema::decode::json(&bytes)
        .map_err(|problem| format!("continue key is not valid: {problem}"))?
        .value;
    if value["v"] != "meta.k8s.io/v1" {
        let version = value["v"].as_str().unwrap_or_default();
        return Err(format!(
            "continue key is not valid: server does not recognize this encoded version {version}"
        ));
    }
    let version = value["rv"].as_i64().unwrap_or(0);
    let start = value["start"].as_str().unwrap_or_default();
    if version == 0 || start.is_empty() {
        return Err("continue key is not valid: incorrect encoded start resourceVersion (version \
             meta.k8s.io/v1)"
            .to_owned());
    }
    let start = start.trim_start_matches('/').trim_end_matches('\0');
    let seen = value["seen"].as_u64().and_then(|seen| usize::try_from(seen).ok());
    Ok((version, start.to_owned(), seen))
}
