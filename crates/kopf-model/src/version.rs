//! Determines which of two states of an object is newer.

use crate::object::Object;

/// The version of an object, comparable as Kubernetes guarantees; zero if it is not a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(u64);

impl Version {
    /// The version of an object.
    #[must_use]
    pub fn of(object: &Object) -> Self {
        Self::parse(object.resource_version())
    }

    /// Parses a version as written by the server.
    #[must_use]
    pub fn parse(version: &str) -> Self {
        Self(version.parse().unwrap_or(0))
    }

    /// The version as a number.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }

    /// The version with this number.
    #[must_use]
    pub fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// Whether this is not newer than the known version; unknown versions are always newer.
    #[must_use]
    pub fn is_covered_by(self, known: Self) -> bool {
        self.0 != 0 && self.0 <= known.0
    }

    /// Whether this is older than the known version; unknown versions never are.
    #[must_use]
    pub fn is_older_than(self, known: Self) -> bool {
        self.0 != 0 && self.0 < known.0
    }

    /// The newer of two states of the same object; `other` if that is unknown.
    #[must_use]
    pub fn newest(one: Object, other: Object) -> Object {
        if Self::of(&other) >= Self::of(&one) { other } else { one }
    }
}
