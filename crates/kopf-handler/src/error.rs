//! Failures of handlers: errors that say whether and when to retry.
//!
//! Created by user code with `?`, [`temporary`], [`permanent`] and [`deny`]; converted into the
//! engine's [`HandlerError`] after the handler returns.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use kopf_core::HandlerError;

/// The result of handlers; a bare `Result` has no value.
///
/// ```
/// use kopf_handler::Result;
///
/// fn read(text: &str) -> Result<i64> {
///     Ok(text.parse()?) // any error works with `?`
/// }
/// assert_eq!(read("x").unwrap_err().to_string(), "invalid digit found in string");
/// ```
pub type Result<T = (), E = Error> = std::result::Result<T, E>;

/// The delay after a temporary error that does not specify one, as in Kopf.
pub const DEFAULT_DELAY: Duration = Duration::from_secs(60);

/// The HTTP code of a denial that does not specify one, as in Kopf.
pub const DEFAULT_DENIAL_CODE: u16 = 500;

/// Why a handler failed, and what to do about it.
///
/// Any error converts into it with `?` and is then treated according to the handler's error mode.
/// It does not implement [`std::error::Error`] itself, for the same reason as `anyhow::Error`.
pub struct Error(Box<Inner>);

struct Inner {
    treatment: Treatment,
    source: Box<dyn StdError + Send + Sync>,
}

enum Treatment {
    ByMode,
    Temporary(Option<Duration>),
    Permanent,
    Denied(u16),
}

/// An error after which the handler is retried, by default after 60 seconds.
///
/// ```
/// use kopf_handler::{Seconds, temporary};
/// let error = temporary("the database is starting").retry_in(5.secs());
/// assert_eq!(error.to_string(), "the database is starting");
/// ```
pub fn temporary(message: impl fmt::Display) -> Error {
    Error::new(Treatment::Temporary(Some(DEFAULT_DELAY)), message.to_string())
}

/// An error after which the handler is never retried.
///
/// ```
/// let error = kopf_handler::permanent("this size cannot work");
/// assert!(error.is_permanent());
/// ```
pub fn permanent(message: impl fmt::Display) -> Error {
    Error::new(Treatment::Permanent, message.to_string())
}

/// A denial of an admission request, with a message for the user who sent it.
///
/// ```
/// let error = kopf_handler::deny("the size must be positive").code(422);
/// assert_eq!(error.to_string(), "the size must be positive");
/// ```
pub fn deny(message: impl fmt::Display) -> Error {
    Error::new(Treatment::Denied(DEFAULT_DENIAL_CODE), message.to_string())
}

impl Error {
    fn new(treatment: Treatment, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self(Box::new(Inner { treatment, source: source.into() }))
    }

    /// Turns the error into one after which the handler is retried with this delay.
    #[must_use]
    pub fn retry_in(mut self, delay: Duration) -> Self {
        self.0.treatment = Treatment::Temporary(Some(delay));
        self
    }

    /// Turns the error into one after which the handler is retried at once.
    #[must_use]
    pub fn retry_now(mut self) -> Self {
        self.0.treatment = Treatment::Temporary(None);
        self
    }

    /// Turns the error into one after which the handler is never retried.
    #[must_use]
    pub fn permanent(mut self) -> Self {
        self.0.treatment = Treatment::Permanent;
        self
    }

    /// Turns the error into a denial of an admission request with this HTTP code.
    #[must_use]
    pub fn code(mut self, code: u16) -> Self {
        self.0.treatment = Treatment::Denied(code);
        self
    }

    /// Whether the handler is never retried after this error, in any error mode.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        matches!(self.0.treatment, Treatment::Permanent | Treatment::Denied(_))
    }

    /// The original error, if it is of this type.
    #[must_use]
    pub fn downcast_ref<E: StdError + 'static>(&self) -> Option<&E> {
        self.0.source.downcast_ref()
    }

    fn chain(&self) -> Option<String> {
        let causes = std::iter::successors(self.0.source.source(), |&cause| cause.source());
        let lines: Vec<_> = causes.map(|cause| format!("caused by: {cause}")).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

/// Any error and any string works with `?`.
impl<E: Into<Box<dyn StdError + Send + Sync>>> From<E> for Error {
    fn from(source: E) -> Self {
        Self::new(Treatment::ByMode, source)
    }
}

impl From<Error> for HandlerError {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error.0.treatment {
            Treatment::Temporary(delay) => Self::Temporary { message, delay },
            Treatment::Permanent => Self::Permanent { message },
            Treatment::Denied(code) => Self::Denied { message, code },
            Treatment::ByMode => {
                let details = error.chain();
                // Errors of the engine itself, such as unfinished sub-handlers, are passed on
                // unchanged.
                match error.0.source.downcast::<Self>() {
                    Ok(original) => *original,
                    Err(_) => Self::Arbitrary { message, details },
                }
            }
        }
    }
}

/// Sets for a failed result whether and when to retry.
///
/// ```
/// use kopf_handler::{ResultExt, Result, Seconds};
///
/// fn size(text: &str) -> Result<i64> {
///     let size: i64 = text.parse().permanent()?;
///     std::fs::read("/nowhere").retry_in(30.secs())?;
///     Ok(size)
/// }
/// assert!(size("x").unwrap_err().is_permanent());
/// assert!(!size("1").unwrap_err().is_permanent());
/// ```
pub trait ResultExt<T> {
    /// On failure, retries the handler after this delay.
    ///
    /// # Errors
    /// Returns the same error with another treatment.
    fn retry_in(self, delay: Duration) -> Result<T>;

    /// On failure, never retries the handler.
    ///
    /// # Errors
    /// Returns the same error with another treatment.
    fn permanent(self) -> Result<T>;
}

impl<T, E: Into<Error>> ResultExt<T> for std::result::Result<T, E> {
    fn retry_in(self, delay: Duration) -> Result<T> {
        self.map_err(|error| error.into().retry_in(delay))
    }

    fn permanent(self) -> Result<T> {
        self.map_err(|error| error.into().permanent())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.source.fmt(formatter)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0.source)?;
        match self.chain() {
            Some(chain) => write!(formatter, "\n{chain}"),
            None => Ok(()),
        }
    }
}
