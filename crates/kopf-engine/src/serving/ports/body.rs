//! Bodies of requests and responses, within the memory limit.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::{Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Body as _;

use super::connection::{Connection, Phase};
use super::{IncomingRequest, Ports, refuse};

/// Responses up to this size are not counted.
const SMALL_RESPONSE: usize = 64 << 10;

/// Why a body is not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("the request body exceeds {max} bytes")]
    TooLarge { max: usize },
    #[error("the request body ended early")]
    Broken(#[source] hyper::Error),
}

impl BodyError {
    pub(crate) fn code(&self) -> StatusCode {
        match self {
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Broken(_) => StatusCode::BAD_REQUEST,
        }
    }
}

impl IncomingRequest {
    /// Reads the body, if it is not larger than this.
    ///
    /// If the announced length is larger, it is rejected before anything is read.
    pub(crate) async fn body(self, max: usize) -> Result<Bytes, BodyError> {
        let Self { request, ports, connection, .. } = self;
        let max = max.min(ports.settings.buffered_bytes_max);
        let mut body = request.into_body();
        if body.size_hint().lower() > max as u64 {
            return Err(BodyError::TooLarge { max });
        }
        connection.enter(Phase::Body, ports.settings.body_timeout);
        let mut read = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(BodyError::Broken)?.into_data() else { continue };
            if read.len() + data.len() > max {
                return Err(BodyError::TooLarge { max });
            }
            ports.reserve(&connection, data.len()).await;
            read.extend_from_slice(&data);
        }
        connection.set_body_read();
        connection.enter_unbounded(Phase::Responding);
        Ok(read.freeze())
    }
}

impl Ports {
    /// Waits for memory for some bytes; the connections with the slowest bodies are closed.
    async fn reserve(&self, connection: &Connection, bytes: usize) {
        let Ok(count) = u32::try_from(bytes) else { return };
        let missing = bytes.saturating_sub(self.bytes.available_permits());
        if missing > 0 {
            self.close_readers(connection.id, missing);
        }
        // The deadline of the body limits this too.
        if let Ok(permit) = Arc::clone(&self.bytes).acquire_many_owned(count).await {
            connection.hold(permit);
        }
    }

    /// Closes those that have been reading a body for the longest time, until enough bytes are
    /// free.
    fn close_readers(&self, except: u64, missing: usize) {
        let mut freed = 0;
        let connections = self.connections.lock();
        let mut readers: Vec<_> = connections
            .values()
            .filter(|it| it.id != except && it.held() > 0)
            .filter_map(|it| Some((it.expendability()?, it)))
            .collect();
        readers.sort_by_key(|(expendability, _)| *expendability);
        for (_, reader) in readers {
            if freed >= missing {
                return;
            }
            freed += reader.held();
            reader.close();
        }
    }

    /// Counts the bytes of a response until it is written; without memory for it, it is rejected.
    pub(super) fn charge(
        &self,
        connection: &Connection,
        response: Response<Full<Bytes>>,
    ) -> Response<Full<Bytes>> {
        let size = response.body().size_hint().lower();
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        connection.shrink(size);
        let more = size.saturating_sub(connection.held());
        if size <= SMALL_RESPONSE || more == 0 {
            return response;
        }
        let count = u32::try_from(more).ok();
        let permit =
            count.and_then(|count| Arc::clone(&self.bytes).try_acquire_many_owned(count).ok());
        match permit {
            Some(permit) => connection.hold(permit),
            None => {
                let text = "too many bytes are waiting for slow clients, try again";
                return refuse(StatusCode::SERVICE_UNAVAILABLE, text);
            }
        }
        response
    }
}
