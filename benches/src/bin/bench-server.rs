//! The server of `cargo xtask bench engine`: creates objects, counts requests, measures times.
//!
//! Listens without TLS for the measured operator, and executes commands from its standard input,
//! one per line, answering each with one line of JSON. Ends when its input ends. Objects are
//! created in this process, so that no load generator takes its share of the machine.

use std::convert::Infallible;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail, ensure};
use benches::book::Book;
use benches::{NAMESPACE, TABLE, definition, large_widget, widget};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use kopf_apiserver::{
    Body, DeleteOptions, LocalClient, Patch, Server, Service, StoreLimits, Target,
};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tower::ServiceExt as _;

/// The same as in `kopf cluster`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The number of objects that are created and deleted as a warm-up.
const WARMING: usize = 128;
/// The number of clients for the warm-up.
const WARMERS: usize = 16;
/// The number of concurrent creations.
const MAKERS: usize = 8;
/// How much memory is allocated in advance.
const MEMORY_BYTES: usize = 128 << 20;
/// The duration of a write in a cluster with disk storage.
const WRITE_DELAY: Duration = Duration::from_millis(5);

/// The server for operators.
#[derive(Clone)]
struct Front {
    service: Service,
    book: Arc<Book>,
    write_delay: Option<Duration>,
}

#[tokio::main]
async fn main() -> Result<()> {
    touch_memory();
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: bench-server KUBECONFIG MARK [--status] [--slow]";
    let kubeconfig = arguments.next().context(usage)?;
    let mark = arguments.next().context("the mark of handled objects is missing")?;
    let options: Vec<String> = arguments.collect();
    let has_status = options.iter().any(|option| option == "--status");
    let write_delay = options.iter().any(|option| option == "--slow").then_some(WRITE_DELAY);
    // Real servers keep all events of some minutes, regardless of their number.
    let limits =
        StoreLimits { ring_events_max: 200_000, ring_bytes_max: 1 << 30, ..StoreLimits::default() };
    let server = Server::builder().controllers(false).limits(limits).build();
    let local = server.local();
    local
        .create("customresourcedefinitions.apiextensions.k8s.io", "", definition(has_status))
        .await
        .context("the definition was refused")?;
    let book = Arc::new(Book::new(mark));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let front = Front { service: server.service(), book: Arc::clone(&book), write_delay };
    tokio::spawn(accept(listener, front));
    warm_up(address, server.admin_token()).await?;
    book.forget();
    drop(book.take_counts());
    std::fs::write(&kubeconfig, text_of_kubeconfig(address, server.admin_token()))?;
    say(&json!({"ready": true}));
    let mut lines = commands();
    while let Some(line) = lines.recv().await {
        let answer = match execute_command(&line, &local, &book).await {
            Ok(answer) => answer,
            Err(error) => json!({"error": format!("{error:#}")}),
        };
        say(&answer);
    }
    Ok(())
}

/// Allocates memory in advance rather than between two responses, like servers that have been
/// running for a while. The allocator is configured to keep it.
fn touch_memory() {
    const BLOCK_BYTES: usize = 64 << 10;
    let blocks: Vec<_> = (0..MEMORY_BYTES / BLOCK_BYTES).map(|_| vec![1_u8; BLOCK_BYTES]).collect();
    drop(std::hint::black_box(blocks));
}

/// Creates and deletes objects before the measurement, since real servers have usually been running
/// for long.
async fn warm_up(address: SocketAddr, token: &str) -> Result<()> {
    let clients = (0..WARMERS).map(|client| tokio::spawn(warm(address, token.to_owned(), client)));
    for client in clients.collect::<Vec<_>>() {
        client.await??;
    }
    Ok(())
}

async fn warm(address: SocketAddr, token: String, client: usize) -> Result<()> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let collection = format!("/apis/bench.kopf.dev/v1/namespaces/{NAMESPACE}/widgets");
    for index in 0..WARMING / WARMERS {
        let name = format!("warm-{client}-{index}");
        let path = format!("{collection}/{name}");
        let patch = json!({"metadata": {"annotations": {"warm": "yes"}}, "status": {"tick": 0}});
        for (method, path, content, body) in [
            (Method::POST, &collection, "application/json", widget(&name, index).to_string()),
            (Method::PATCH, &path, "application/merge-patch+json", patch.to_string()),
            (Method::DELETE, &path, "application/json", String::new()),
        ] {
            let request = Request::builder()
                .method(method)
                .uri(path)
                .header(header::HOST, address.to_string())
                .header(header::AUTHORIZATION, format!("Bearer {token}"))
                .header(header::CONTENT_TYPE, content)
                .body(Full::new(Bytes::from(body)))?;
            let response = sender.send_request(request).await?;
            let status = response.status();
            ensure!(status.is_success(), "{name} was answered with {status}");
            response.into_body().collect().await?;
        }
    }
    drop(sender);
    connection.await??;
    Ok(())
}

/// Reads the lines of the standard input on a separate thread.
fn commands() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

fn say(answer: &Value) {
    let mut out = std::io::stdout().lock();
    // The reader is gone only when the benchmark is over.
    let _ = writeln!(out, "{answer}");
    let _ = out.flush();
}

fn text_of_kubeconfig(address: SocketAddr, token: &str) -> String {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{"name": "it", "cluster": {
            "server": format!("http://{address}"),
        }}],
        "users": [{"name": "it", "user": {"token": token}}],
        "contexts": [{"name": "it", "context": {
            "cluster": "it", "user": "it", "namespace": NAMESPACE,
        }}],
    });
    config.to_string()
}

async fn accept(listener: TcpListener, front: Front) {
    while let Ok((stream, _)) = listener.accept().await {
        // Otherwise, a benchmark would measure delayed acknowledgements.
        let _ = stream.set_nodelay(true);
        let front = front.clone();
        tokio::spawn(async move {
            let answering =
                hyper::service::service_fn(move |request| front.clone().answer(request));
            let builder = auto::Builder::new(TokioExecutor::new());
            // Clients may close connections at any time.
            let _ = builder.serve_connection(TokioIo::new(stream), answering).await;
        });
    }
}

impl Front {
    async fn answer(self, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
        if request.headers().contains_key(header::UPGRADE) {
            // Some clients request watches as WebSockets; this makes them fall back to HTTP.
            let mut refused = self.service.oneshot(Request::new(Full::default())).await?;
            *refused.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            return Ok(refused);
        }
        let (parts, body) = request.into_parts();
        let body = match body.collect().await {
            Ok(collected) => collected.to_bytes(),
            Err(_) => Bytes::new(),
        };
        let entry = self.book.begin(&parts, &body);
        if let Some(delay) = self.write_delay.filter(|_| parts.method != Method::GET) {
            tokio::time::sleep(delay).await;
        }
        let response = self.service.oneshot(Request::from_parts(parts, Full::new(body))).await?;
        self.book.finish(entry, response.status().as_u16());
        Ok(response)
    }
}

async fn execute_command(line: &str, local: &LocalClient, book: &Arc<Book>) -> Result<Value> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |index: usize| -> Result<usize> {
        Ok(words.get(index).context("a number is missing")?.parse()?)
    };
    match words.first().copied().unwrap_or_default() {
        "create" => {
            create(local, book, words.get(1).context("no prefix")?, number(2)?, widget).await
        }
        "create-large" => {
            create(local, book, words.get(1).context("no prefix")?, number(2)?, large_widget).await
        }
        "paced" => {
            paced(local, book, words.get(1).context("no prefix")?, number(2)?, number(3)?).await
        }
        "handled" => {
            let timeout = Duration::from_millis(u64::try_from(number(2)?)?);
            Ok(book.wait_for(number(1)?, timeout).await)
        }
        "latencies" => Ok(book.latencies(words.get(1).context("no prefix")?)),
        "touch" => change(local, number(1)?, |round| json!({"status": {"tick": round}})).await,
        "edit" => change(local, number(1)?, |round| json!({"spec": {"size": 1000 + round}})).await,
        "delete" => delete(local, number(1)?).await,
        "counts" => Ok(book.take_counts()),
        "lists" => Ok(json!({"lists": book.take_lists()})),
        "forget" => {
            book.forget();
            Ok(json!({}))
        }
        "watching" => Ok(json!({"at": book.watching_since()})),
        "objects" => Ok(objects(local).await),
        other => bail!("unknown command `{other}`"),
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

async fn create(
    local: &LocalClient,
    book: &Arc<Book>,
    prefix: &str,
    count: usize,
    object: fn(&str, usize) -> Value,
) -> Result<Value> {
    let mut shares: Vec<Vec<(String, Value)>> = vec![Vec::new(); MAKERS];
    for index in 0..count {
        let name = format!("{prefix}-{index}");
        shares[index % MAKERS].push((name.clone(), object(&name, index)));
    }
    // Preparing the objects is not measured.
    let first_at = now();
    let makers = shares.into_iter().map(|share| {
        let (local, book) = (local.clone(), Arc::clone(book));
        tokio::spawn(async move {
            for (name, object) in share {
                make(&local, &book, object, name).await?;
                // Creations must not delay the responses to the operator.
                tokio::task::yield_now().await;
            }
            anyhow::Ok(())
        })
    });
    for maker in makers.collect::<Vec<_>>() {
        maker.await??;
    }
    Ok(json!({"first_at": first_at, "last_at": now()}))
}

async fn make(local: &LocalClient, book: &Book, object: Value, name: String) -> Result<()> {
    let created = local.create(TABLE, NAMESPACE, object).await;
    created.with_context(|| format!("{name} was refused"))?;
    book.created(name);
    Ok(())
}

/// Creates objects at a rate per second that does not depend on how fast they are handled.
async fn paced(
    local: &LocalClient,
    book: &Arc<Book>,
    prefix: &str,
    count: usize,
    rate: usize,
) -> Result<Value> {
    let pause = Duration::from_secs(1) / u32::try_from(rate.max(1))?;
    let mut ticks = tokio::time::interval(pause);
    for index in 0..count {
        ticks.tick().await;
        let name = format!("{prefix}-{index}");
        make(local, book, widget(&name, index), name).await?;
    }
    Ok(json!({}))
}

/// Changes all objects this many times, one round after the other.
async fn change(
    local: &LocalClient,
    rounds: usize,
    patch: impl Fn(usize) -> Value,
) -> Result<Value> {
    let objects = local.list(TABLE, NAMESPACE).await;
    let mut changes = 0;
    for round in 1..=rounds {
        for object in &objects {
            let target = Target::new(TABLE, NAMESPACE, object.name());
            let changed = local.patch(target, Patch::Merge(patch(round))).await;
            changed.context("a change was refused")?;
            changes += 1;
            tokio::task::yield_now().await;
        }
    }
    Ok(json!({"changes": changes}))
}

async fn delete(local: &LocalClient, count: usize) -> Result<Value> {
    for object in local.list(TABLE, NAMESPACE).await.iter().take(count) {
        let target = Target::new(TABLE, NAMESPACE, object.name());
        let deleted = local.delete(target, DeleteOptions::default()).await;
        deleted.context("a deletion was refused")?;
    }
    Ok(json!({}))
}

/// The number of objects, how many of them are handled, and their size.
async fn objects(local: &LocalClient) -> Value {
    let objects = local.list(TABLE, NAMESPACE).await;
    let is_handled = |object: &Value| {
        let annotations = &object["metadata"]["annotations"];
        object["status"]["create"]["ok"] == true
            || annotations["kopf.zalando.org/last-handled-configuration"].is_string()
    };
    let handled = objects.iter().filter(|object| is_handled(object.value())).count();
    let bytes: usize = objects.iter().map(|object| object.encoded().len()).sum();
    let bare: usize = objects
        .iter()
        .map(|object| {
            let mut value = object.value().clone();
            if let Some(metadata) = value["metadata"].as_object_mut() {
                metadata.shift_remove("managedFields");
            }
            value.to_string().len()
        })
        .sum();
    json!({"count": objects.len(), "handled": handled, "bytes": bytes, "bare_bytes": bare})
}
