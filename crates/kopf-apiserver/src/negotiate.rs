//! Determines the representation that a client wants from its `Accept` header.
//!
//! Pure. Responses are JSON or YAML; an object may be converted to a `Table` or to its metadata.

use crate::StatusError;

/// The syntax of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Syntax {
    /// JSON.
    #[default]
    Json,
    /// YAML.
    Yaml,
}

/// The shape of objects in a response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Shape {
    /// The object itself.
    #[default]
    Object,
    /// A table; the string is the version of `meta.k8s.io`.
    Table(String),
    /// `PartialObjectMetadata`; the string is the version of `meta.k8s.io`.
    Metadata(String),
}

/// A negotiated representation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Representation {
    /// JSON or YAML.
    pub(crate) syntax: Syntax,
    /// Object, table or metadata.
    pub(crate) shape: Shape,
}

impl Representation {
    /// The `Content-Type` of the response.
    pub(crate) fn content_type(&self) -> &'static str {
        match self.syntax {
            Syntax::Json => "application/json",
            Syntax::Yaml => "application/yaml",
        }
    }

    /// Whether cached JSON can be sent unchanged.
    pub(crate) fn is_plain_json(&self) -> bool {
        self.syntax == Syntax::Json && self.shape == Shape::Object
    }
}

/// Like [`negotiate`] for a collection, which can also be watched. The list at the start of a watch
/// is never a table.
pub(crate) fn negotiate_collection(
    accept: &str,
    starts_with_list: bool,
) -> Result<Representation, StatusError> {
    const STREAMS: &str =
        ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
    let is_table = |clause: &&str| clause.split(';').any(|part| part.trim() == "as=Table");
    let served: Vec<&str> =
        accept.split(',').filter(|clause| !starts_with_list || !is_table(clause)).collect();
    if served.is_empty() {
        return Err(transformation_refused());
    }
    negotiate(&served.join(",")).map_err(|mut error| {
        if error.message.starts_with("406") {
            error.message.push_str(STREAMS);
        }
        error
    })
}

fn transformation_refused() -> StatusError {
    StatusError::new(
        406,
        "NotAcceptable",
        "only the following media types are accepted: application/json, application/yaml, \
         application/vnd.kubernetes.protobuf",
    )
}

/// Picks the supported clause with the highest quality; the first one if several are equal.
pub(crate) fn negotiate(accept: &str) -> Result<Representation, StatusError> {
    if accept.trim().is_empty() {
        return Ok(Representation::default());
    }
    let mut clauses: Vec<&str> = accept.split(',').collect();
    if accept.contains("q=") {
        clauses.sort_by_key(|clause| std::cmp::Reverse(quality(clause)));
    }
    for clause in clauses {
        if let Some(representation) = serve_clause(clause) {
            return Ok(representation);
        }
    }
    if accept.contains("as=") {
        return Err(transformation_refused());
    }
    Err(StatusError::new(
        406,
        "NotAcceptable",
        "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
         application/vnd.kubernetes.protobuf",
    )
    .about("", "", ""))
}

/// The quality of a clause, in thousandths.
fn quality(clause: &str) -> u32 {
    let given = clause.split(';').find_map(|part| part.trim().strip_prefix("q="));
    let quality = given.and_then(|text| text.parse::<f64>().ok()).unwrap_or(1.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1000")]
    let thousandths = (quality.clamp(0.0, 1.0) * 1000.0) as u32;
    thousandths
}

fn serve_clause(clause: &str) -> Option<Representation> {
    let mut parts = clause.split(';').map(str::trim);
    let syntax = match parts.next()? {
        "application/json" | "*/*" => Syntax::Json,
        "application/yaml" => Syntax::Yaml,
        _ => return None,
    };
    let (mut kind, mut group, mut version) = ("", "", "");
    for parameter in parts {
        match parameter.split_once('=') {
            Some(("as", value)) => kind = value,
            Some(("g", value)) => group = value,
            Some(("v", value)) => version = value,
            _ => {}
        }
    }
    let shape = match (kind, group, version) {
        ("", _, _) => Shape::Object,
        ("Table", "meta.k8s.io", "v1" | "v1beta1") => Shape::Table(version.to_owned()),
        (
            "PartialObjectMetadata" | "PartialObjectMetadataList",
            "meta.k8s.io",
            "v1" | "v1beta1",
        ) => Shape::Metadata(version.to_owned()),
        _ => return None,
    };
    Some(Representation { syntax, shape })
}

#[cfg(test)]
mod tests {
    //! Tests for negotiation.
    use super::{Shape, Syntax, negotiate};

    #[test]
    fn the_first_served_clause_wins() {
        let table =
            negotiate("application/json;as=Table;v=v1;g=meta.k8s.io,application/json;q=0.9,*/*");
        assert_eq!(table.unwrap().shape, Shape::Table("v1".into()));
        let json = negotiate("application/vnd.kubernetes.protobuf,application/json").unwrap();
        assert!(json.is_plain_json());
        assert_eq!(negotiate("application/yaml").unwrap().syntax, Syntax::Yaml);
        assert!(negotiate("").unwrap().is_plain_json());
        assert_eq!(negotiate("text/html").unwrap_err().code, 406);
    }
}
