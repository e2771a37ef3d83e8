//! In-process requests to the embedded server, for `cargo xtask bench instructions`.
//!
//! `bench-requests KIND COUNT` creates some objects, sends COUNT requests through the whole pipeline
//! (without sockets), and ends; with the kind `start`, it starts COUNT servers, with `fork`, it copies
//! one. Everything runs on one thread, so that the number of instructions is almost the same every
//! time.

use anyhow::{Context as _, Result, bail, ensure};
use benches::{NAMESPACE, definition, widget};
use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt as _, Full};
use kopf_apiserver::Server;
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// The same as in `kopf cluster`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The number of objects that are patched in turn.
const OBJECTS: usize = 100;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let usage = "usage: bench-requests create|patch|apply|get|list|start|fork COUNT";
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().context(usage)?;
    let count: usize = arguments.next().context(usage)?.parse()?;
    let server = Server::builder().controllers(false).build();
    let client = server.local();
    let definitions = "customresourcedefinitions.apiextensions.k8s.io";
    client
        .create(definitions, "", definition(false))
        .await
        .context("the definition was refused")?;
    for index in 0..OBJECTS {
        create(&server, "present", index).await?;
    }
    for index in 0..count {
        match kind.as_str() {
            "create" => create(&server, "new", index).await?,
            "patch" => patch(&server, index).await?,
            "apply" => apply(&server, index).await?,
            "get" => get(&server, &format!("{}/present-{}", collection(), index % OBJECTS)).await?,
            "list" => get(&server, &collection()).await?,
            "fork" => drop(server.fork()),
            "start" => get(&Server::new(), "/api/v1/namespaces").await?,
            other => bail!("unknown kind of request `{other}`; {usage}"),
        }
    }
    server.settle().await;
    Ok(())
}

async fn create(server: &Server, prefix: &str, index: usize) -> Result<()> {
    let object = widget(&format!("{prefix}-{index}"), index);
    send(server, Method::POST, collection(), "application/json", &object).await
}

/// The write of an operator after a handler: a result and an annotation.
async fn patch(server: &Server, index: usize) -> Result<()> {
    let body = json!({
        "metadata": {"annotations": {"last-handled": format!("{:0>400}", index)}},
        "status": {"create": {"ok": index}},
    });
    let path = format!("{}/present-{}", collection(), index % OBJECTS);
    send(server, Method::PATCH, path, "application/merge-patch+json", &body).await
}

async fn get(server: &Server, path: &str) -> Result<()> {
    let request = Request::get(path).body(Full::default())?;
    exchange(server, request, path).await
}

/// A whole object with one changed field.
async fn apply(server: &Server, index: usize) -> Result<()> {
    let name = format!("present-{}", index % OBJECTS);
    let mut body = widget(&name, index);
    body["spec"]["size"] = index.into();
    let path = format!("{}/{name}?fieldManager=bench&force=true", collection());
    send(server, Method::PATCH, path, "application/apply-patch+yaml", &body).await
}

fn collection() -> String {
    format!("/apis/bench.kopf.dev/v1/namespaces/{NAMESPACE}/widgets")
}

async fn send(
    server: &Server,
    method: Method,
    path: String,
    content: &str,
    body: &Value,
) -> Result<()> {
    let request = Request::builder()
        .method(method)
        .uri(&path)
        .header(header::CONTENT_TYPE, content)
        .body(Full::from(body.to_string()))?;
    exchange(server, request, &path).await
}

async fn exchange(server: &Server, request: Request<Full<Bytes>>, path: &str) -> Result<()> {
    let response = server.service().oneshot(request).await?;
    let status = response.status();
    ensure!(status.is_success(), "{path} was answered with {status}");
    response.into_body().collect().await?;
    Ok(())
}
