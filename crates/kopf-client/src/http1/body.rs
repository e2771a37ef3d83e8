//! Where the body of a response ends, and its parts.

use bytes::{Buf as _, Bytes, BytesMut};

use super::Broken;

/// The longest line with the size of a chunk. Servers do not use the extensions in it.
const SIZE_LINE_MAX: usize = 4 * 1024;
/// The most bytes of headers after the last chunk, which are ignored.
const TRAILERS_MAX: usize = 64 * 1024;

/// What is left of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// This many bytes.
    Length(u64),
    /// Chunks with their sizes.
    Chunks(Chunk),
    /// Everything until the connection is closed.
    UntilClosed,
}

/// The place in a sequence of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chunk {
    /// Before the size of the next chunk.
    Size,
    /// Before this many bytes of a chunk.
    Data(u64),
    /// Before the end of the line after a chunk.
    End,
    /// In the headers after the last chunk, this many bytes of which were skipped.
    Trailers(usize),
}

impl Framing {
    /// No body.
    pub(crate) const NOTHING: Self = Self::Length(0);
    /// The beginning of a sequence of chunks.
    pub(crate) const CHUNKS: Self = Self::Chunks(Chunk::Size);

    /// Whether the body has ended.
    pub(crate) fn is_over(&self) -> bool {
        *self == Self::NOTHING
    }

    /// The stream has ended; fails if the body has not.
    pub(super) fn close(&mut self) -> Result<(), Broken> {
        match std::mem::replace(self, Self::NOTHING) {
            Self::UntilClosed | Self::NOTHING => Ok(()),
            Self::Length(_) | Self::Chunks(_) => Err(Broken::Closed),
        }
    }

    /// Takes the next part of the body from what was received, without copying it; `None` if more
    /// must be received first, and at the end of the body.
    pub(super) fn take(&mut self, received: &mut BytesMut) -> Result<Option<Bytes>, Broken> {
        while !received.is_empty() && !self.is_over() {
            match self {
                Self::UntilClosed => return Ok(Some(received.split().freeze())),
                Self::Length(left) => return Ok(Some(split(received, left))),
                Self::Chunks(Chunk::Data(left)) => {
                    let part = split(received, left);
                    if *left == 0 {
                        *self = Self::Chunks(Chunk::End);
                    }
                    return Ok(Some(part));
                }
                Self::Chunks(chunk) => match chunk.skip(received)? {
                    Step::Next(next) => *chunk = next,
                    Step::Over => *self = Self::NOTHING,
                    Step::More => return Ok(None),
                },
            }
        }
        Ok(None)
    }
}

/// What follows after something between the data of chunks was skipped.
enum Step {
    Next(Chunk),
    /// The body has ended.
    Over,
    /// More must be received first.
    More,
}

impl Chunk {
    /// Skips what is between the data of chunks.
    fn skip(&self, received: &mut BytesMut) -> Result<Step, Broken> {
        match *self {
            Self::Data(left) => Ok(Step::Next(Self::Data(left))),
            Self::Size => skip_size(received),
            Self::End if received.len() < 2 => Ok(Step::More),
            Self::End => match &received[..2] == b"\r\n" {
                true => {
                    received.advance(2);
                    Ok(Step::Next(Self::Size))
                }
                false => Err(Broken::Malformed("a chunk is longer than its size")),
            },
            Self::Trailers(skipped) => {
                let Some(end) = memchr::memchr(b'\n', received) else {
                    return match skipped + received.len() > TRAILERS_MAX {
                        true => Err(Broken::Malformed("the trailers are too long")),
                        false => Ok(Step::More),
                    };
                };
                let is_last = received[..end].trim_ascii_end().is_empty();
                received.advance(end + 1);
                match is_last {
                    true => Ok(Step::Over),
                    false if skipped + end > TRAILERS_MAX => {
                        Err(Broken::Malformed("the trailers are too long"))
                    }
                    false => Ok(Step::Next(Self::Trailers(skipped + end + 1))),
                }
            }
        }
    }
}

fn skip_size(received: &mut BytesMut) -> Result<Step, Broken> {
    let invalid = || Broken::Malformed("the size of a chunk is invalid");
    // The parser accepts an empty size as zero, which would be the end.
    if !received[0].is_ascii_hexdigit() {
        return Err(invalid());
    }
    match httparse::parse_chunk_size(received).map_err(|_| invalid())? {
        httparse::Status::Partial if received.len() > SIZE_LINE_MAX => Err(invalid()),
        httparse::Status::Partial => Ok(Step::More),
        httparse::Status::Complete((length, size)) => {
            received.advance(length);
            Ok(Step::Next(if size == 0 { Chunk::Trailers(0) } else { Chunk::Data(size) }))
        }
    }
}

fn split(received: &mut BytesMut, left: &mut u64) -> Bytes {
    let count = usize::try_from(*left).unwrap_or(usize::MAX).min(received.len());
    *left -= count as u64;
    received.split_to(count).freeze()
}
