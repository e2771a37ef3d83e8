//! How handlers fail: errors that say whether and when to try again.
//!
//! Made by user code with `?`, [`temporary`], [`permanent`] and [`deny`]; turned into the engine's
//! [`HandlerError`] when the handler is over.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use kopf_core::HandlerError;

/// What handlers return; a bare `Result` is one without a value.
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

/// The delay after a temporary error that does not name one, as in Kopf.
pub const DEFAULT_DELAY: Duration = Duration::from_secs(60);

/// The HTTP code of a denial that does not name one, as in Kopf.
pub const DEFAULT_DENIAL_CODE: u16 = 500;

/// Why a handler failed, and what to do about it.
///
/// Any error converts into it with `?` and is then treated as the handler's error mode says. It does
/// not implement [`std::error::Error`] itself, for the same reason as `anyhow::Error` does not.
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

/// An error after which the handler is tried again, after 60 seconds by default.
///
/// ```
/// use kopf_handler::{Seconds, temporary};
/// let error = temporary("the database is starting").retry_in(5.secs());
/// assert_eq!(error.to_string(), "the database is starting");
/// ```
pub fn temporary(message: impl fmt::Display) -> Error {
    Error::new(Treatment::Temporary(Some(DEFAULT_DELAY)), message.to_string())
}

/// An error after which the handler is never tried again.
///
/// ```
/// let error = kopf_handler::permanent("this size cannot work");
/// assert!(error.is_permanent());
/// ```
pub fn permanent(message: impl fmt::Display) -> Error {
    Error::new(Treatment::Permanent, message.to_string())
}

/// The refusal of an admission request, with a message for the user who asks.
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

    /// The same error, as one after which the handler is tried again so much later.
    #[must_use]
    pub fn retry_in(mut self, delay: Duration) -> Self {
        self.0.treatment = Treatment::Temporary(Some(delay));
        self
    }

    /// The same error, as one after which the handler is tried again at once.
    #[must_use]
    pub fn retry_now(mut self) -> Self {
        self.0.treatment = Treatment::Temporary(None);
        self
    }

    /// The same error, as one after which the handler is never tried again.
    #[must_use]
    pub fn permanent(mut self) -> Self {
        self.0.treatment = Treatment::Permanent;
        self
    }

    /// The same error, as a refusal of an admission request with this HTTP code.
    #[must_use]
    pub fn code(mut self, code: u16) -> Self {
        self.0.treatment = Treatment::Denied(code);
        self
    }

    /// Whether the handler is never tried again after this error, in any error mode.
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

/// Any error, and any text, works with `?`.
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
                // What the engine itself said, such as unfinished sub-handlers, is passed on as is.
                match error.0.source.downcast::<Self>() {
                    Ok(original) => *original,
                    Err(_) => Self::Arbitrary { message, details },
                }
            }
        }
    }
}

/// Says of a failed result whether and when to try again.
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
    /// On failure, the handler is tried again so much later.
    ///
    /// # Errors
    /// The same as before, with the treatment changed.
    fn retry_in(self, delay: Duration) -> Result<T>;

    /// On failure, the handler is never tried again.
    ///
    /// # Errors
    /// The same as before, with the treatment changed.
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
