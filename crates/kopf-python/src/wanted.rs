//! What an empty cluster needs before operators can work with it, as Python writes it.

use kopf_cli::definitions::Wanted;
use kopf_cli::load::Document;
use kopf_core::definition;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value;

use crate::declare::SelectorDeclaration;

/// Definitions of typed resources, what handlers are for, and objects to load; all are JSON.
pub(crate) fn parse(
    definitions: &str,
    selectors: &str,
    documents: &str,
) -> PyResult<(Wanted, Vec<Document>)> {
    let invalid = |error: &dyn std::fmt::Display| PyValueError::new_err(error.to_string());
    let definitions: Vec<Value> =
        serde_json::from_str(definitions).map_err(|error| invalid(&error))?;
    let declared: Vec<SelectorDeclaration> =
        serde_json::from_str(selectors).map_err(|error| invalid(&error))?;
    let mut selectors = Vec::new();
    for selector in declared {
        selectors.push(selector.build().map_err(|error| invalid(&error))?);
    }
    let manifests: Vec<Value> = serde_json::from_str(documents).map_err(|error| invalid(&error))?;
    let place = || "a document".to_owned();
    let documents =
        manifests.into_iter().map(|manifest| Document { place: place(), manifest }).collect();
    let definitions = definition::merged(definitions);
    Ok((Wanted { definitions, selectors }, documents))
}
