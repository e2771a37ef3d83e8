//! The headers that a login adds to every request: credentials and configured headers.

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::Empty;
use kube::Config;
use kube::client::ConfigExt as _;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceBuilder, ServiceExt as _};

use crate::http1::{Message, headers_text};
use crate::secrets::Secrets;

/// The headers of a login.
pub(crate) enum Marks {
    /// Always the same, also as text.
    Fixed(HeaderMap, Vec<u8>),
    /// From files and plugins, whose results change.
    Changing(Echo),
}

/// Responds with the headers of its request.
type Echo = BoxCloneSyncService<Request<Empty<Bytes>>, Response<()>, BoxError>;

impl Marks {
    /// Creates the headers according to a configuration.
    pub(crate) async fn of(config: &Config, secrets: &Secrets) -> Result<Self, BoxError> {
        let echo = tower::service_fn(|request: Request<Empty<Bytes>>| async move {
            let mut response = Response::new(());
            *response.headers_mut() = request.into_parts().0.headers;
            Ok::<_, BoxError>(response)
        });
        let echo = ServiceBuilder::new()
            .option_layer(secrets.auth.as_ref())
            .layer(config.extra_headers_layer()?)
            .service(echo);
        let echo = Echo::new(echo);
        let auth = &config.auth_info;
        if auth.exec.is_some() || auth.auth_provider.is_some() || auth.token_file.is_some() {
            return Ok(Self::Changing(echo));
        }
        let marks = asked(echo).await?;
        let text = headers_text(&marks);
        Ok(Self::Fixed(marks, text))
    }

    /// Writes the headers into a request, and the host unless it is one of them.
    pub(crate) async fn write(
        &self,
        message: &mut Message,
        host: &HeaderValue,
    ) -> Result<(), BoxError> {
        let has_host = match self {
            Self::Fixed(marks, text) => {
                message.push_text(text);
                marks.contains_key(HOST)
            }
            Self::Changing(echo) => {
                let marks = asked(echo.clone()).await?;
                message.push_all(&marks);
                marks.contains_key(HOST)
            }
        };
        if !has_host {
            message.push(HOST.as_str(), host.as_bytes());
        }
        Ok(())
    }

    /// Adds the headers to a request.
    pub(crate) async fn add(&self, headers: &mut HeaderMap) -> Result<(), BoxError> {
        match self {
            Self::Fixed(marks, _) => append(headers, marks),
            Self::Changing(echo) => append(headers, &asked(echo.clone()).await?),
        }
        Ok(())
    }
}

fn append(headers: &mut HeaderMap, marks: &HeaderMap) {
    if marks.contains_key(AUTHORIZATION) {
        headers.remove(AUTHORIZATION);
    }
    for (name, value) in marks {
        headers.append(name.clone(), value.clone());
    }
}

async fn asked(echo: Echo) -> Result<HeaderMap, BoxError> {
    Ok(echo.oneshot(Request::new(Empty::new())).await?.into_parts().0.headers)
}
