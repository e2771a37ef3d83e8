//! The heads of requests and responses as text.

use std::mem::MaybeUninit;

use bytes::{Buf as _, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use super::{Broken, Framing};

/// The maximum length of the head of a response, and of the number of its headers.
const HEAD_MAX: usize = 256 * 1024;
const HEADERS_MAX: usize = 100;

/// A typical head of a request fits into this.
const HEAD_GUESS: usize = 512;

/// A request that is ready to be sent, possibly several times.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(super) head: Vec<u8>,
    pub(super) body: Bytes,
    /// Whether only the head is requested.
    is_head: bool,
    /// Whether the headers of a successful response are of interest.
    wants_headers: bool,
}

/// The head of a response.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: StatusCode,
    /// Empty if they are of no interest.
    pub(crate) headers: HeaderMap,
    pub(crate) framing: Framing,
    /// Whether the connection can be used again.
    pub(super) is_lasting: bool,
}

impl Message {
    /// Begins with the request line; the path consists of parts that are valid without escapes.
    pub(crate) fn begin(method: &Method, path: [&str; 2], body: Bytes) -> Self {
        let mut head = Vec::with_capacity(HEAD_GUESS);
        for part in [method.as_str(), " ", path[0], path[1], " HTTP/1.1\r\n"] {
            head.extend_from_slice(part.as_bytes());
        }
        Self { head, body, is_head: method == Method::HEAD, wants_headers: false }
    }

    /// Lets the response have all of its headers, even if it is successful.
    pub(crate) fn with_headers(mut self) -> Self {
        self.wants_headers = true;
        self
    }

    /// Adds a header.
    pub(crate) fn push(&mut self, name: &str, value: &[u8]) {
        push_header(&mut self.head, name, value);
    }

    /// Adds headers.
    pub(crate) fn push_all(&mut self, headers: &HeaderMap) {
        for (name, value) in headers {
            self.push(name.as_str(), value.as_bytes());
        }
    }

    /// Adds the text of headers.
    pub(crate) fn push_text(&mut self, headers: &[u8]) {
        self.head.extend_from_slice(headers);
    }

    /// Adds the length of the body, and ends the head.
    pub(crate) fn end(mut self, method: &Method) -> Self {
        // Requests that usually have a body say that they have none.
        if !self.body.is_empty() || matches!(*method, Method::POST | Method::PUT | Method::PATCH) {
            let mut digits = [0; 20];
            let length = decimal(self.body.len(), &mut digits);
            push_header(&mut self.head, "content-length", length);
        }
        self.head.extend_from_slice(b"\r\n");
        self
    }
}

/// Headers as text, for requests that always have the same ones.
pub(crate) fn headers_text(headers: &HeaderMap) -> Vec<u8> {
    let mut text = Vec::new();
    for (name, value) in headers {
        push_header(&mut text, name.as_str(), value.as_bytes());
    }
    text
}

fn push_header(into: &mut Vec<u8>, name: &str, value: &[u8]) {
    for part in [name.as_bytes(), b": ", value, b"\r\n"] {
        into.extend_from_slice(part);
    }
}

fn decimal(number: usize, digits: &mut [u8; 20]) -> &[u8] {
    let (mut at, mut left) = (digits.len(), number);
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            return &digits[at..];
        }
    }
}

/// Takes the head of the response from what was received; `None` if it is not complete.
///
/// Heads of interim responses are skipped.
pub(super) fn take(received: &mut BytesMut, asked: &Message) -> Result<Option<Head>, Broken> {
    while !received.is_empty() {
        let mut headers = [const { MaybeUninit::uninit() }; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut []);
        let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
            &mut response,
            received,
            &mut headers,
        )?;
        let httparse::Status::Complete(length) = parsed else {
            if received.len() > HEAD_MAX {
                return Err(Broken::Malformed("its head is too long"));
            }
            return Ok(None);
        };
        let head = Head::of(&response, asked)?;
        received.advance(length);
        match head.status.as_u16() {
            101 => return Err(Broken::Malformed("the protocol changes without a request")),
            100..200 => {}
            _ => return Ok(Some(head)),
        }
    }
    Ok(None)
}

/// The headers that say where the body ends, and what happens to the connection.
#[derive(Default)]
struct Hints {
    length: Option<u64>,
    is_coded: bool,
    is_chunked: bool,
    closes: bool,
    stays: bool,
}

impl Head {
    fn of(response: &httparse::Response<'_, '_>, asked: &Message) -> Result<Self, Broken> {
        let code = response.code.unwrap_or_default();
        let invalid = |_| Broken::Malformed("its status code is invalid");
        let status = StatusCode::from_u16(code).map_err(invalid)?;
        let mut hints = Hints::default();
        let mut headers = HeaderMap::new();
        let is_wanted = asked.wants_headers || !status.is_success();
        if is_wanted {
            headers.reserve(response.headers.len());
        }
        for header in response.headers.iter() {
            hints.note(header.name, header.value)?;
            if is_wanted {
                let invalid = || Broken::Malformed("a header is invalid");
                let name = HeaderName::from_bytes(header.name.as_bytes()).map_err(|_| invalid())?;
                let value = HeaderValue::from_bytes(header.value).map_err(|_| invalid())?;
                headers.append(name, value);
            }
        }
        let framing = match code {
            204 | 304 => Framing::NOTHING,
            _ if asked.is_head => Framing::NOTHING,
            _ => hints.framing(),
        };
        let is_lasting =
            hints.is_lasting(response.version == Some(1)) && framing != Framing::UntilClosed;
        Ok(Self { status, headers, framing, is_lasting })
    }
}

impl Hints {
    fn note(&mut self, name: &str, value: &[u8]) -> Result<(), Broken> {
        // The length tells most other names apart.
        match name.len() {
            10 if name.eq_ignore_ascii_case("connection") => {
                for word in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                    self.closes |= word.eq_ignore_ascii_case(b"close");
                    self.stays |= word.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            14 if name.eq_ignore_ascii_case("content-length") => {
                for number in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                    let length = length_of(number);
                    let is_same = self.length.is_none() || self.length == length;
                    if length.is_none() || !is_same {
                        return Err(Broken::Malformed("the length of its body is invalid"));
                    }
                    self.length = length;
                }
            }
            17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                let last = value.rsplit(|byte| *byte == b',').next().unwrap_or_default();
                self.is_coded = true;
                self.is_chunked = last.trim_ascii().eq_ignore_ascii_case(b"chunked");
            }
            _ => {}
        }
        Ok(())
    }

    fn framing(&self) -> Framing {
        match self.length {
            _ if self.is_chunked => Framing::CHUNKS,
            Some(length) if !self.is_coded => Framing::Length(length),
            _ => Framing::UntilClosed,
        }
    }

    /// Connections of HTTP/1.0 are closed unless the server says otherwise. A server that gives two
    /// lengths is not trusted with another request.
    fn is_lasting(&self, is_http_1_1: bool) -> bool {
        let is_ambiguous = self.is_coded && self.length.is_some();
        !self.closes && (is_http_1_1 || self.stays) && !is_ambiguous
    }
}

/// A number of digits only.
fn length_of(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}
