//! Sends traces to a collector: the work on each object, with its handlers and requests.
//!
//! Behind the feature `otlp`. The engine and the client always create the spans; this module sends
//! them, as OTLP over plain HTTP. To reach a collector behind TLS, use a local agent.

use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanExporter};
use tokio::runtime::Runtime;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

/// The environment variables that enable traces, as defined by OpenTelemetry.
const VARIABLES: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// A batch is lost if the collector does not respond within this time.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// Responses are short; longer ones do not come from a collector.
const ANSWER_MAX: usize = 1 << 20;

/// A connection to a collector; the remaining spans are sent when it is dropped.
///
/// ```no_run
/// use tracing_subscriber::prelude::*;
/// # async fn example() -> Result<(), kopf_cli::telemetry::TelemetryError> {
/// let telemetry = kopf_cli::telemetry::Telemetry::to("http://127.0.0.1:4318/v1/traces", "demo")?;
/// tracing_subscriber::registry().with(telemetry.layer()).init();
/// # Ok(()) }
/// ```
pub struct Telemetry {
    provider: SdkTracerProvider,
}

/// Why traces cannot be sent.
#[derive(Debug, thiserror::Error)]
#[error("could not prepare traces for the collector")]
pub struct TelemetryError(#[from] opentelemetry_otlp::ExporterBuildError);

impl Telemetry {
    /// Sends traces to the collector in the environment, if one is set.
    ///
    /// # Errors
    /// Fails if the address of the collector is malformed.
    pub fn from_environment(service: &str) -> Result<Option<Self>, TelemetryError> {
        let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        if !VARIABLES.iter().any(is_set) {
            return Ok(None);
        }
        Self::build(None, service).map(Some)
    }

    /// Sends traces to the collector at a URL, such as `http://127.0.0.1:4318/v1/traces`.
    ///
    /// # Errors
    /// Fails if the URL is malformed.
    pub fn to(url: &str, service: &str) -> Result<Self, TelemetryError> {
        Self::build(Some(url), service)
    }

    fn build(url: Option<&str>, service: &str) -> Result<Self, TelemetryError> {
        let mut exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_timeout(PATIENCE)
            .with_http_client(Transport::default());
        if let Some(url) = url {
            exporter = exporter.with_endpoint(url);
        }
        let exporter = exporter.build()?;
        let resource = Resource::builder().with_service_name(service.to_owned()).build();
        let provider = SdkTracerProvider::builder();
        Ok(Self {
            provider: provider.with_batch_exporter(exporter).with_resource(resource).build(),
        })
    }

    /// Sends each span to an exporter at once: for tests.
    #[doc(hidden)]
    pub fn to_exporter(exporter: impl SpanExporter + 'static) -> Self {
        Self { provider: SdkTracerProvider::builder().with_simple_exporter(exporter).build() }
    }

    /// The layer that turns spans of the engine and the client into traces.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + 'static
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        let tracer = self.provider.tracer("kopf");
        tracing_opentelemetry::layer()
            .with_tracer(tracer)
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_filter(filter_fn(|metadata| metadata.target().starts_with("kopf")))
    }
}

/// Sends the remaining spans.
impl Drop for Telemetry {
    fn drop(&mut self) {
        // The program ends, so lost traces cannot be reported.
        let _ = self.provider.shutdown_with_timeout(PATIENCE);
    }
}

/// Sends on the exporter's own thread and needs no other: when a program ends, the thread of its
/// runtime may be the one that waits for the last spans.
#[derive(Default)]
struct Transport {
    // Created by the first request, since it can only be dropped on that thread.
    runtime: OnceLock<Runtime>,
}

impl Transport {
    fn runtime(&self) -> std::io::Result<&Runtime> {
        if let Some(runtime) = self.runtime.get() {
            return Ok(runtime);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(self.runtime.get_or_init(|| runtime))
    }
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Transport")
    }
}

#[async_trait::async_trait]
impl HttpClient for Transport {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        // Batches are seconds apart, and nothing monitors an idle connection in between.
        let client = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build_http();
        let exchange = async {
            let response = client.request(request.map(Full::new)).await?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, ANSWER_MAX).collect().await?.to_bytes();
            Ok::<_, HttpError>(Response::from_parts(head, body))
        };
        self.runtime()?.block_on(async { tokio::time::timeout(PATIENCE, exchange).await })?
    }
}
