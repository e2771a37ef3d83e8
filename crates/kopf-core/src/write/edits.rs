//! The requests of a patch with transformations: JSON patches, each with a test of the version.

use std::panic::{AssertUnwindSafe, catch_unwind};

use kopf_model::json_patch::{self, Operation};
use kopf_model::{Object, Patch, Transformation, merge};
use serde_json::{Map, Value, json};

use super::request::Request;
use super::{Document, TransformationFailure, Writer, document_of};
use crate::invoke::panic_text;

/// How to write a document.
enum Edit {
    /// Merge patches cannot conflict, so they are preferred where possible.
    Merge,
    Json(Vec<Operation>),
}

impl Writer<'_> {
    pub(super) fn next_edit(&mut self) -> Option<Request<'_>> {
        if !self.pending.main && !self.pending.status {
            return None;
        }
        if is_about_finalizers(&self.patch) {
            let change = edit_finalizers(&self.patch, self.known())?;
            return self.pending.main.then(|| self.edit(Document::Main, change));
        }
        // The results are written before the record that they exist, so that a crash between the
        // two loses nothing. And once the object is released, no further write may be possible.
        for document in [Document::Status, Document::Main] {
            let is_pending = match document {
                Document::Main => self.pending.main,
                Document::Status => self.pending.status,
            };
            if !is_pending {
                continue;
            }
            match self.edit_of(document) {
                None => {}
                Some(Edit::Merge) => return Some(self.merge(document, self.version_of(document))),
                Some(Edit::Json(operations)) => return Some(self.edit(document, operations)),
            }
        }
        None
    }

    fn edit_of(&mut self, document: Document) -> Option<Edit> {
        let known = self.known().clone();
        let body = known.value();
        let whole = self.patch.merge_for(body.get("status")).into_owned();
        let mut merged = body.clone();
        merge::apply(&mut merged, &whole);
        let target = self.transformed(&merged);
        let has_status = self.has_status;
        let belongs = |operation: &Operation| {
            let is_status = has_status && operation.is_about_status();
            is_status == (document == Document::Status)
        };
        if !json_patch::between(&merged, &target).iter().any(belongs) {
            let own = whole.into_iter().filter(|(key, _)| document_of(key, has_status) == document);
            let own: Map<String, Value> = own.collect();
            return merge::changes(body, &own).then_some(Edit::Merge);
        }
        let mut operations = json_patch::between(body, &target);
        operations.retain(belongs);
        if operations.is_empty() {
            return None;
        }
        operations.insert(0, Operation::test_version(known.resource_version()));
        Some(Edit::Json(operations))
    }

    /// The body after all transformations but those that fail.
    ///
    /// A failing transformation must neither block its object nor end the daemon that requested it,
    /// so it is treated like content that the server rejects.
    fn transformed(&mut self, merged: &Value) -> Value {
        'restart: loop {
            let mut target = merged.clone();
            for (number, transformation) in self.patch.transformations.iter().enumerate() {
                let applied = catch_unwind(AssertUnwindSafe(|| transformation.apply(&mut target)));
                let failure = match applied {
                    Ok(Ok(())) => None,
                    Ok(Err(error)) => Some(TransformationFailure::Error(error)),
                    Err(panic) => Some(TransformationFailure::Panic(panic_text(panic.as_ref()))),
                };
                if let Some(failure) = failure {
                    // It may have left the body half-changed.
                    self.failures.push(failure);
                    self.patch.to_mut().transformations.remove(number);
                    continue 'restart;
                }
            }
            return target;
        }
    }
}

fn is_about_finalizers(patch: &Patch) -> bool {
    let Patch { merge, transformations, conditions, .. } = patch;
    merge.is_empty()
        && conditions.is_empty()
        && transformations.iter().all(Transformation::is_about_finalizers)
}

/// The request of a patch that changes only finalizers: every held object gets one, and its
/// finalizers are known without parsing the rest.
fn edit_finalizers(patch: &Patch, object: &Object) -> Option<Vec<Operation>> {
    let before = object.finalizers();
    let mut after: Vec<&str> = before.iter().map(String::as_str).collect();
    for transformation in &patch.transformations {
        match transformation {
            Transformation::AddFinalizer(name) if !after.contains(&&**name) => after.push(name),
            Transformation::RemoveFinalizer(name) => after.retain(|other| *other != &**name),
            _ => {}
        }
    }
    let path = || "/metadata/finalizers".to_owned();
    let change = match (before.is_empty(), after.is_empty()) {
        (true, true) => return None,
        (true, false) => vec![Operation::Add { path: path(), value: after.into() }],
        (false, true) => vec![Operation::Remove { path: path() }],
        (false, false) => {
            let tree = |list: Value| json!({"metadata": {"finalizers": list}});
            json_patch::between(&tree(before.into()), &tree(after.into()))
        }
    };
    if change.is_empty() {
        return None;
    }
    let test = Operation::test_version(object.resource_version());
    Some(std::iter::once(test).chain(change).collect())
}
