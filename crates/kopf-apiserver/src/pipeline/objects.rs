//! Resource requests: from HTTP to the verbs and back.

use std::sync::Arc;

use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{Response, StatusCode};
use serde_json::{Value, json};

use crate::answer::{acceptable_error, add_warnings, bytes_response, text_response};
use crate::audit::Annotations;
use crate::authorize::authorize;
use crate::body::Body;
use crate::decode;
use crate::encode::Encoder;
use crate::faults::{Trouble, disturb};
use crate::http_request::Request;
use crate::kinds::Kind;
use crate::negotiate::{Representation, Shape, Syntax, negotiate, negotiate_collection};
use crate::query::WriteOptions;
use crate::registry::Registry;
use crate::request::{RequestInfo, Verb};
use crate::request_log::LoggedRequest;
use crate::resource::ResourceInfo;
use crate::rest::{
    self, Call, Change, DeleteRequest, Deleted, ListRequest, PatchKind, WatchRequest,
};
use crate::state::Inner;
use crate::{StatusError, Stored, User, convert};

/// Answers a resource request.
pub(super) async fn handle(
    inner: &Arc<Inner>,
    user: Arc<User>,
    request: &Request,
    info: Arc<RequestInfo>,
) -> Result<Response<Body>, StatusError> {
    let answer = answer(inner, &user, request, &info).await;
    let accept = request.header(&ACCEPT);
    let response = answer.unwrap_or_else(|error| acceptable_error(&error, accept));
    inner.log.push(LoggedRequest {
        number: 0,
        info,
        user: user.name.clone(),
        path: request.target.clone(),
        content_type: request.header(&CONTENT_TYPE).to_owned(),
        body: request.body.clone(),
        status: response.status().as_u16(),
    });
    Ok(response)
}

async fn answer(
    inner: &Arc<Inner>,
    user: &Arc<User>,
    request: &Request,
    info: &Arc<RequestInfo>,
) -> Result<Response<Body>, StatusError> {
    authorize(inner, user, info, &request.query)?;
    let troubles = inner.faults.strike(info, &user.name);
    strike(inner, &troubles, info).await?;
    if !is_known(inner, info) {
        return Ok(text_response(StatusCode::NOT_FOUND, "404 page not found\n"));
    }
    let resource = find(inner, info)?;
    check_list_kind(info, &resource, request.header(&ACCEPT))?;
    let accept = request.header(&ACCEPT);
    let representation = match info.verb {
        Verb::List => negotiate_collection(accept, false)?,
        Verb::Watch => negotiate_collection(accept, request.query.flag("sendInitialEvents"))?,
        _ => negotiate(accept)?,
    };
    check_include_object(&representation, request.query.text("includeObject"))?;
    let encoder = Encoder {
        resource: Arc::clone(&resource),
        representation,
        include_object: request.query.text("includeObject").to_owned(),
        now: inner.clock.now(),
        columns_sent: std::sync::Arc::default(),
    };
    let options = match info.verb {
        Verb::Create => WriteOptions::parse(&request.query, "CreateOptions")?,
        Verb::Update => WriteOptions::parse(&request.query, "UpdateOptions")?,
        Verb::Patch => WriteOptions::parse(&request.query, "PatchOptions")?,
        _ => WriteOptions::default(),
    };
    let mut call = Call {
        inner: Arc::clone(inner),
        user: Arc::clone(user),
        resource,
        info: Arc::clone(info),
        options,
        default_manager: manager_of(request.header(&USER_AGENT)),
        tracked: false,
        nested: false,
        keeps_identity: false,
        wrong_kind: None,
        raw_body: bytes::Bytes::new(),
        warnings: Vec::new(),
        annotations: Vec::new(),
        observed: None,
    };
    call.warnings.extend(deprecation(&call.resource));
    let mut response = match dispatch(&mut call, request, &encoder, &troubles).await {
        Ok(response) => response,
        Err(error) => acceptable_error(&error, request.header(&ACCEPT)),
    };
    add_warnings(&mut response, &call.warnings);
    if !call.annotations.is_empty() {
        response.extensions_mut().insert(Annotations(std::mem::take(&mut call.annotations)));
    }
    Ok(response)
}

/// Whether a path of a custom group leads to a resource; other groups have their own error page.
fn is_known(inner: &Inner, info: &RequestInfo) -> bool {
    let registry = inner.registry();
    match registry.find(&info.group, &info.version, &info.resource) {
        Some(resource) => !resource.is_custom() || info.namespace.is_empty() || resource.namespaced,
        None => Registry::builtin().groups().iter().any(|group| group.name == info.group),
    }
}

/// Rejects list metadata for a single object, and the other way round.
fn check_list_kind(
    info: &RequestInfo,
    resource: &ResourceInfo,
    accept: &str,
) -> Result<(), StatusError> {
    let wants = |kind: &str| accept.split([';', ',']).any(|part| part.trim() == kind);
    let (kind, other, list) = match info.verb {
        Verb::List if wants("as=PartialObjectMetadata") => {
            ("PartialObjectMetadata", "a list", "List")
        }
        Verb::Get if wants("as=PartialObjectMetadataList") => {
            ("PartialObjectMetadataList", "not a list", "")
        }
        _ => return Ok(()),
    };
    if accept.contains(',') {
        return Ok(());
    }
    let package = match resource.group.split('.').next() {
        _ if resource.is_custom() => "unstructured",
        None | Some("") => "core",
        Some(package) => package,
    };
    let name = if resource.is_custom() { "Unstructured" } else { &resource.kind };
    let problem = format!(
        "you requested {kind}, but the requested object is {other} (*{package}.{name}{list})"
    );
    Err(StatusError::new(406, "NotAcceptable", problem))
}

/// Rejects unknown values of `includeObject`.
fn check_include_object(representation: &Representation, given: &str) -> Result<(), StatusError> {
    let is_table = matches!(representation.shape, Shape::Table(_));
    if !is_table || matches!(given, "" | "None" | "Metadata" | "Object") {
        return Ok(());
    }
    Err(StatusError::bad_request(format!(
        "Unable to convert to Table as requested: includeObject: Invalid value: {given:?}: must be \
         'Metadata', 'Object', 'None', or empty"
    )))
}

/// The warning in every response about a deprecated resource.
fn deprecation(resource: &ResourceInfo) -> Option<String> {
    match &resource.custom {
        Some(custom) => custom.deprecation_warning.clone(),
        None => Kind::of(resource).deprecation.map(str::to_owned),
    }
}

/// Applies the faults that do not need a stream.
async fn strike(
    inner: &Inner,
    troubles: &[Trouble],
    info: &RequestInfo,
) -> Result<(), StatusError> {
    for trouble in troubles {
        match trouble {
            Trouble::Status(error) => return Err(error.clone()),
            Trouble::Latency(duration) => inner.clock.sleep(*duration).await,
            Trouble::Expired if info.verb != Verb::Watch => {
                return Err(StatusError::expired(
                    "The resourceVersion for the provided list is too old.",
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The first token of a user agent, which is the default field manager.
fn manager_of(user_agent: &str) -> String {
    const MANAGER_LENGTH_MAX: usize = 128;
    let name = user_agent.split('/').next().unwrap_or_default();
    let name: String = name.chars().take(MANAGER_LENGTH_MAX).collect();
    if name.is_empty() { "unknown".to_owned() } else { name }
}

/// The resource of a request, if it exists and has the verb.
fn find(inner: &Inner, info: &RequestInfo) -> Result<Arc<ResourceInfo>, StatusError> {
    let registry = inner.registry();
    let missing = || {
        StatusError::new(404, "NotFound", "the server could not find the requested resource")
            .about("", "", "")
    };
    let resource = registry.find(&info.group, &info.version, &info.resource).ok_or_else(missing)?;
    let in_namespace = !info.namespace.is_empty() && info.resource != "namespaces";
    if in_namespace && !resource.namespaced {
        return Err(missing());
    }
    let verbs = if info.subresource.is_empty() {
        &resource.verbs
    } else {
        let name = info.subresource.split('/').next().unwrap_or_default();
        let absent = || match resource.is_custom() {
            true => StatusError::not_found(&resource.group, &resource.resource, &info.name),
            false => missing(),
        };
        &resource.subresource(name).ok_or_else(absent)?.verbs
    };
    let allowed = |verb: &str| verbs.iter().any(|known| known == verb);
    let has_collection = allowed("list") || allowed("create");
    let all_namespaces = resource.namespaced && info.namespace.is_empty();
    let right_place = match info.verb {
        // Upstream's handler of custom resources does not look at the name in the path.
        Verb::Create if info.subresource.is_empty() => {
            (info.name.is_empty() || resource.is_custom()) && !all_namespaces
        }
        Verb::DeleteCollection => !all_namespaces,
        Verb::Update | Verb::Patch => !info.name.is_empty(),
        _ => true,
    };
    let is_nowhere = all_namespaces && !info.name.is_empty();
    if right_place && !is_nowhere && allowed(info.verb.as_str()) {
        return Ok(Arc::clone(resource));
    }
    if is_nowhere {
        return Err(missing());
    }
    if resource.is_custom() && !info.subresource.is_empty() {
        let (group, plural) = (&resource.group, &resource.resource);
        return Err(StatusError::method_not_supported(group, plural, info.verb.as_str()));
    }
    // 405 if the path exists for other methods, 404 if it exists for none.
    let path_exists = match info.name.is_empty() {
        true if all_namespaces => allowed("list"),
        true => has_collection,
        false => allowed("get") || !info.subresource.is_empty(),
    };
    if !path_exists {
        return Err(missing());
    }
    Err(StatusError::method_not_supported("", "", info.verb.as_str()))
}

async fn dispatch(
    call: &mut Call,
    request: &Request,
    encoder: &Encoder,
    troubles: &[Trouble],
) -> Result<Response<Body>, StatusError> {
    if !call.info.subresource.is_empty()
        && let Some(response) = Box::pin(subresource(call, request, encoder)).await?
    {
        return Ok(response);
    }
    match call.info.verb {
        Verb::Get => get(call, request, encoder).await,
        Verb::List => list(call, request, encoder).await,
        Verb::Watch => watch(call, request, encoder, troubles),
        Verb::Create => create(call, request, encoder).await,
        Verb::Update => {
            let kind = call.resource.kind.clone();
            let body = decode::body(request.header(&CONTENT_TYPE), &request.body, &kind)?;
            call.raw_body = request.body.clone();
            let object = rest::typed(call, body)?;
            let (stored, created) = rest::update(call, object).await?;
            let code = if created { StatusCode::CREATED } else { StatusCode::OK };
            object_response(code, call, encoder, &stored).await
        }
        Verb::Patch => {
            let custom = call.resource.is_custom();
            let kind = PatchKind::parse(request.header(&CONTENT_TYPE), custom)?;
            let body = kind.decode(&request.body);
            let (stored, created) = rest::patch(call, kind, body).await?;
            let status = if created { StatusCode::CREATED } else { StatusCode::OK };
            object_response(status, call, encoder, &stored).await
        }
        Verb::Delete => Box::pin(delete(call, request, encoder)).await,
        Verb::DeleteCollection => Box::pin(delete_collection(call, request, encoder)).await,
    }
}

/// The response with one stored object, in the requested version.
async fn object_response(
    status: StatusCode,
    call: &Call,
    encoder: &Encoder,
    stored: &Arc<Stored>,
) -> Result<Response<Body>, StatusError> {
    let content_type = encoder.representation.content_type();
    let served = convert::served(&call.inner, &call.resource, stored).await?;
    Ok(bytes_response(status, content_type, encoder.object(&served)))
}

async fn get(
    call: &Call,
    request: &Request,
    encoder: &Encoder,
) -> Result<Response<Body>, StatusError> {
    let version = rest::parse_version(request.query.text("resourceVersion"))?;
    rest::read_version(call, version)?;
    // Reads from here on return nothing older.
    let stored = call.read()?;
    object_response(StatusCode::OK, call, encoder, &stored).await
}

async fn list(
    call: &Call,
    request: &Request,
    encoder: &Encoder,
) -> Result<Response<Body>, StatusError> {
    let options = ListRequest::parse(call, &request.query)?;
    let listed = rest::list(call, &options).await?;
    let content_type = encoder.representation.content_type();
    if encoder.is_large(&listed.items) {
        let mut response = bytes_response(StatusCode::OK, content_type, bytes::Bytes::new());
        *response.body_mut() = Body::stream(encoder.list_stream(listed.items, &listed.meta));
        return Ok(response);
    }
    let body = encoder.list(&listed.items, &listed.meta);
    Ok(bytes_response(StatusCode::OK, content_type, body))
}

fn watch(
    call: &Call,
    request: &Request,
    encoder: &Encoder,
    troubles: &[Trouble],
) -> Result<Response<Body>, StatusError> {
    if encoder.representation.syntax == Syntax::Yaml {
        return Err(StatusError::new(
            406,
            "NotAcceptable",
            "only the following media types are accepted: application/json;stream=watch, \
             application/vnd.kubernetes.protobuf;stream=watch",
        ));
    }
    let options = WatchRequest::parse(call, &request.query, request.header(&ACCEPT))?;
    let stream = rest::watch(call, options, encoder.clone());
    let content_type = encoder.representation.content_type();
    let mut response = bytes_response(StatusCode::OK, content_type, bytes::Bytes::new());
    *response.body_mut() = if troubles.is_empty() {
        Body::watch(stream)
    } else {
        Body::watch(disturb(stream, troubles, &call.inner.clock))
    };
    Ok(response)
}

async fn create(
    call: &mut Call,
    request: &Request,
    encoder: &Encoder,
) -> Result<Response<Body>, StatusError> {
    if call.resource.custom.as_ref().is_some_and(|custom| custom.terminating) {
        return Err(StatusError::new(
            405,
            "MethodNotAllowed",
            "create not allowed while custom resource definition is terminating",
        )
        .about(&call.resource.group, &call.resource.resource, ""));
    }
    if !call.info.name.is_empty() {
        call.info_mut().name.clear();
    }
    let kind = call.resource.kind.clone();
    let body = decode::body(request.header(&CONTENT_TYPE), &request.body, &kind)?;
    call.raw_body = request.body.clone();
    let object = rest::typed(call, body)?;
    if let Some(answer) = crate::reviews::answer(call, &object)? {
        let body = encoder.value(&answer);
        let content_type = encoder.representation.content_type();
        return Ok(bytes_response(StatusCode::CREATED, content_type, body));
    }
    if &*call.resource.table == "bindings" {
        return crate::subresources::bind_named(call, &object).await;
    }
    let stored = rest::create(call, object).await?;
    object_response(StatusCode::CREATED, call, encoder, &stored).await
}

/// The body of a deletion; no body or an empty one means no options.
fn delete_options(request: &Request) -> Result<DeleteRequest, StatusError> {
    let body = if request.body.is_empty() {
        Value::Null
    } else {
        let content_type = request.header(&CONTENT_TYPE);
        let decoded = decode::body(content_type, &request.body, "DeleteOptions");
        decoded.map_err(plain_decode_error)?.value
    };
    check_options_kind(&body)?;
    DeleteRequest::parse(&request.query, &body)
}

/// Options that cannot be decoded give a 500 without a reason, as in upstream.
fn plain_decode_error(error: StatusError) -> StatusError {
    let Some((_, problem)) = error.message.split_once("couldn't get") else { return error };
    let problem = problem.rsplit_once(" (").map_or(problem, |(problem, _)| problem);
    StatusError::new(500, "", format!("couldn't get{problem}"))
}

/// The kinds that every group version has, besides `DeleteOptions`.
const META_KINDS: [&str; 10] = [
    "Status",
    "APIVersions",
    "APIGroupList",
    "APIGroup",
    "APIResourceList",
    "ListOptions",
    "GetOptions",
    "CreateOptions",
    "UpdateOptions",
    "PatchOptions",
];

fn check_options_kind(body: &Value) -> Result<(), StatusError> {
    let (kind, api_version) = (body["kind"].as_str(), body["apiVersion"].as_str());
    match (kind, api_version) {
        (Some(kind), Some("v1")) if META_KINDS.contains(&kind) => {
            let problem =
                format!("converting (v1.{kind}) to (v1.DeleteOptions): unknown conversion");
            Err(StatusError::new(500, "", problem))
        }
        (Some(kind), Some(version)) if kind != "DeleteOptions" => Err(StatusError::new(
            500,
            "",
            format!(
                "no kind {kind:?} is registered for version {version:?} in scheme \
                 \"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:31\""
            ),
        )),
        _ => Ok(()),
    }
}

async fn delete(
    call: &mut Call,
    request: &Request,
    encoder: &Encoder,
) -> Result<Response<Body>, StatusError> {
    let options = delete_options(request)?;
    let content_type = encoder.representation.content_type();
    if options.propagation_policy.is_none() && options.orphan_dependents.is_none() {
        let warning = Kind::of(&call.resource).deletion_warning;
        call.warnings.extend(warning.map(str::to_owned));
    }
    match rest::delete(call, &options).await? {
        Deleted::Pending(stored) => object_response(StatusCode::OK, call, encoder, &stored).await,
        Deleted::Gone(stored) if Kind::of(&call.resource).returns_deleted => {
            object_response(StatusCode::OK, call, encoder, &stored).await
        }
        Deleted::Gone(stored) => {
            let status = success(&call.resource, &stored);
            Ok(bytes_response(StatusCode::OK, content_type, encoder.text(&status)))
        }
    }
}

fn success(resource: &ResourceInfo, stored: &Stored) -> Value {
    let mut details = json!({ "name": stored.name() });
    if !resource.group.is_empty() {
        details["group"] = json!(resource.group);
    }
    details["kind"] = json!(resource.resource);
    details["uid"] = json!(stored.uid());
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {},
        "status": "Success", "details": details,
    })
}

async fn delete_collection(
    call: &mut Call,
    request: &Request,
    encoder: &Encoder,
) -> Result<Response<Body>, StatusError> {
    let options = delete_options(request)?;
    // As upstream, one page is deleted if the client asks for pages.
    let wanted = ListRequest::parse(call, &request.query)?;
    let listed = rest::list(call, &wanted).await?;
    rest::delete_collection(call, &options, &listed.items).await?;
    let body = encoder.list(&listed.items, &listed.meta);
    Ok(bytes_response(StatusCode::OK, encoder.representation.content_type(), body))
}

/// Handles subresources that are not just another view of the object; `None` for the others.
async fn subresource(
    call: &mut Call,
    request: &Request,
    encoder: &Encoder,
) -> Result<Option<Response<Body>>, StatusError> {
    match call.info.subresource.as_str() {
        "scale" => scale(call, request, encoder).await.map(Some),
        _ => crate::subresources::handle(call, request, encoder).await,
    }
}

async fn scale(
    call: &mut Call,
    request: &Request,
    encoder: &Encoder,
) -> Result<Response<Body>, StatusError> {
    let stored = match call.info.verb {
        Verb::Get => call.read()?,
        Verb::Update => {
            let content_type = request.header(&CONTENT_TYPE);
            let body = decode::body(content_type, &request.body, "Scale")?.value;
            rest::check_scale(call, &body)?;
            rest::write_scale(call, Change::Patch, |_| Ok(body.clone())).await?
        }
        _ => {
            let kind = PatchKind::parse(request.header(&CONTENT_TYPE), call.resource.is_custom())?;
            let body = kind.decode(&request.body)?.value;
            if kind == PatchKind::Apply {
                let stored = rest::apply_scale(call, &body).await?;
                return scale_answer(call, &stored, encoder).await;
            }
            rest::write_scale(call, Change::Patch, |old| {
                let mut scale = old.clone();
                match kind {
                    PatchKind::Json => crate::patch::json::apply(&mut scale, &body)?,
                    _ => crate::patch::merge::apply(&mut scale, &body),
                }
                rest::check_patched_scale(old, &scale)?;
                Ok(scale)
            })
            .await?
        }
    };
    scale_answer(call, &stored, encoder).await
}

async fn scale_answer(
    call: &Call,
    stored: &Arc<Stored>,
    encoder: &Encoder,
) -> Result<Response<Body>, StatusError> {
    let served = convert::served(&call.inner, &call.resource, stored).await?;
    let scale = rest::read_scale(call, served.content())?;
    let content_type = encoder.representation.content_type();
    Ok(bytes_response(StatusCode::OK, content_type, encoder.text(&scale)))
}
