//! The floor of `bench server`: a server that reads requests and answers with a given number of bytes.
//!
//! It has the same HTTP and TLS libraries and the same kind of runtime as ours, but it decodes,
//! stores and checks nothing. No server with these libraries can be faster.

use std::sync::Arc;

use anyhow::Result;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::subject::ServeArguments;
use crate::http::Request;
use crate::kubeconfig;

/// The header with the number of bytes of the answer.
const ANSWER_BYTES: &str = "x-answer-bytes";
/// No answer is larger.
const ANSWER_MAX: usize = 16 * 1024 * 1024;

/// The same request, to be answered with so many bytes.
pub(super) fn request(mut request: Request, answer_bytes: usize) -> Request {
    request.headers.push((ANSWER_BYTES.to_owned(), answer_bytes.to_string()));
    request
}

/// Serves until the process is killed.
pub(crate) fn serve(arguments: &ServeArguments) -> Result<()> {
    let certified = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()])?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    crate::http::runtime()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let ca_file = arguments.path_beside("ca.pem");
        std::fs::write(&ca_file, certified.cert.pem())?;
        let address = format!("https://{}", listener.local_addr()?);
        let ca_file = ca_file.to_string_lossy();
        arguments.write(&kubeconfig::render(&address, &ca_file, "none"))?;
        let content = Bytes::from(vec![b' '; ANSWER_MAX]);
        loop {
            let (stream, _) = listener.accept().await?;
            let (acceptor, content) = (acceptor.clone(), content.clone());
            // A client that goes away ends only its own connection.
            tokio::spawn(async move { connection(stream, acceptor, content).await.ok() });
        }
    })
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, content: Bytes) -> Result<()> {
    stream.set_nodelay(true)?;
    let encrypted = acceptor.accept(stream).await?;
    let service = service_fn(move |request| answer(request, content.clone()));
    http1::Builder::new().serve_connection(TokioIo::new(encrypted), service).await?;
    Ok(())
}

async fn answer(
    request: hyper::Request<Incoming>,
    content: Bytes,
) -> Result<hyper::Response<Full<Bytes>>> {
    let wanted = request.headers().get(ANSWER_BYTES).and_then(|value| value.to_str().ok());
    let wanted = wanted.and_then(|text| text.parse().ok()).unwrap_or(0).min(content.len());
    request.into_body().collect().await?;
    let response = hyper::Response::builder().header("content-type", "application/json");
    Ok(response.body(Full::new(content.slice(..wanted)))?)
}
