//! Writes one patch: which requests to send, in which order, and how to react to each response.
//!
//! Pure. The engine sends each request and returns the response, for cycles, daemons and timers
//! alike. At most one request per (sub)resource, none without effect, more only after conflicts.
//!
//! A patch without transformations is sent as a merge patch. With transformations, everything is
//! sent as a JSON patch with a test of the version, so that no concurrent edit of a list is lost;
//! if the test fails, the whole patch must be applied to the newer state. Both apply only to their
//! own object, not to another one that has taken its name.
//!
//! Conditions are merged into the list of the newest known state and sent with its version: lists
//! are replaced as a whole, and conditions of other writers must not be lost.

use std::borrow::Cow;

use kopf_model::json_patch::Operation;
use kopf_model::{CallbackError, ConditionChanges, Object, Patch, Resource, merge};
use serde_json::{Map, Value};

mod edits;
mod own;
mod rejection;
mod request;
mod unstored;

pub use kopf_model::Version;
pub use own::{dropped_fields, is_whole, own_part};
pub use rejection::{
    After, AfterOwn, Asker, Look, OwnAnswer, Rejection, after_failure, after_outdated,
    after_own_part,
};
pub use request::{Content, Guard, Part, Request};

/// How often the version of an object is requested after a conflict. After that, its status is
/// written to any version, unless it has conditions: busy writers must not block us.
const CONFLICTS_MAX: u32 = 3;

/// The requests of one patch of one object.
#[derive(Clone)]
pub struct Writer<'a> {
    patch: Cow<'a, Patch>,
    object: &'a Object,
    /// The state in the last response.
    newest: Option<Object>,
    has_status: bool,
    /// Whether everything is sent as a merge patch; if so, its fields are compared at the end.
    is_merge: bool,
    asked: Documents,
    pending: Documents,
    step: Step,
    sent: Option<Sent>,
    /// The merge patch with the conditions of the newest state, if there are any.
    merged: Option<Map<String, Value>>,
    end: Progress,
    failures: Vec<TransformationFailure>,
}

/// How a transformation has failed; it is dropped then.
#[derive(Clone, Debug)]
pub enum TransformationFailure {
    /// With its own error.
    Error(CallbackError),
    /// By a panic with this text.
    Panic(String),
}

/// The result of a patch.
#[derive(Clone, Debug)]
pub enum End {
    /// There was nothing to change.
    Unchanged,
    /// The object is now in this state.
    Changed(Object),
    /// The object has changed meanwhile, or the server rejects the content (it does not distinguish
    /// these): this must be applied to the newer state.
    Outdated(Patch),
    /// The object no longer exists.
    NotFound,
    /// The object no longer exists, but another one with its name does.
    Replaced,
    /// It failed with the last rejection.
    Failed,
}

/// One of the two documents of a resource with a status subresource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Document {
    Main,
    Status,
}

#[derive(Clone, Copy, Debug, Default)]
struct Documents {
    main: bool,
    status: bool,
}

/// What to send next.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The pending document.
    Next,
    /// A request that changes nothing: the response is the newest state. Reading the object would
    /// work too, but operators need not have the right to read single objects.
    Ask(Document, u32),
    /// The same document again, for the newest state.
    Again(Document, u32),
    /// The same document again, for any state.
    AnyVersion(Document),
}

/// The request that the response belongs to.
#[derive(Clone, Copy, Debug)]
struct Sent {
    document: Document,
    /// Whether it is for one version only, and after how many conflicts.
    versioned: Option<u32>,
    is_question: bool,
    /// Whether the server rejects it for an object with another uid.
    is_for_uid: bool,
}

#[derive(Clone, Debug)]
enum Progress {
    Going,
    /// The status is permanently rejected, which must not block the rest.
    StatusRefused(Rejection),
    Over(End),
}

impl<'a> Writer<'a> {
    /// Creates the requests for a patch of an object, given its newest known state.
    #[must_use]
    pub fn new(patch: &'a Patch, resource: &Resource, object: &'a Object) -> Self {
        let has_status = resource.subresources.contains("status");
        let (is_empty, is_merge) = (patch.is_empty(), patch.transformations.is_empty());
        let pending = Documents { main: !is_empty, status: !is_empty && has_status };
        let mut writer = Self {
            patch: Cow::Borrowed(patch),
            object,
            newest: None,
            has_status,
            is_merge,
            asked: pending,
            pending,
            step: Step::Next,
            sent: None,
            merged: None,
            end: Progress::Going,
            failures: Vec::new(),
        };
        if is_merge && !is_empty {
            writer.merge_conditions();
            let main = writer.is_changed(Document::Main);
            let status = has_status && writer.is_changed(Document::Status);
            writer.asked = Documents { main, status };
            writer.pending = writer.asked;
        }
        writer
    }

    /// The next request, or `None` if nothing is left to send.
    ///
    /// Transformations that fail are dropped, see [`Self::failures`].
    #[must_use]
    pub fn next_request(&mut self) -> Option<Request<'_>> {
        if matches!(self.end, Progress::Over(_)) {
            return None;
        }
        match self.step {
            Step::Ask(document, conflicts) => {
                let part = Part::default();
                let guard = Guard::by_uid(self.object, &part);
                let is_for_uid = matches!(guard, Guard::Uid(_));
                let versioned = Some(conflicts);
                self.sent = Some(Sent { document, versioned, is_question: true, is_for_uid });
                Some(Request { to_status: false, content: Content::Merge(part, guard) })
            }
            Step::Again(document, conflicts) => Some(self.merge(document, Some(conflicts))),
            Step::AnyVersion(document) => Some(self.merge(document, None)),
            Step::Next if self.is_merge => {
                // The object is marked as handled only once the results are stored: a crash between
                // the two repeats the handlers instead of losing their results.
                let document = match self.pending {
                    Documents { status: true, .. } => Document::Status,
                    Documents { main: true, .. } => Document::Main,
                    Documents { .. } => return None,
                };
                Some(self.merge(document, self.version_of(document)))
            }
            Step::Next => self.next_edit(),
        }
    }

    /// Processes the response to the last request: the object as it is now.
    pub fn accepted(&mut self, answered: Object) {
        let Some(sent) = self.sent.take() else { return };
        // Patches address objects by name.
        if answered.uid() != self.object.uid() {
            self.end = Progress::Over(End::Replaced);
            return;
        }
        self.newest = Some(match self.newest.take() {
            Some(known) => Version::newest(known, answered),
            None => answered,
        });
        if let (true, Some(conflicts)) = (sent.is_question, sent.versioned) {
            self.step = Step::Again(sent.document, conflicts);
            return;
        }
        self.step = Step::Next;
        match sent.document {
            Document::Main => self.pending.main = false,
            Document::Status => self.pending.status = false,
        }
    }

    /// Processes a rejection of the last request, or that it reached another object of this name.
    pub fn rejected(&mut self, rejection: Rejection, is_misdirected: bool) {
        let Some(sent) = self.sent.take() else { return };
        if is_misdirected && sent.is_for_uid {
            self.end = Progress::Over(End::Replaced);
            return;
        }
        let Sent { document, versioned, is_question, .. } = sent;
        match versioned.filter(|_| rejection == Rejection::Conflict && !is_question) {
            Some(conflicts) if conflicts < CONFLICTS_MAX => {
                self.step = Step::Ask(document, conflicts + 1);
            }
            Some(_) if !self.patch.has_conditions() => self.step = Step::AnyVersion(document),
            _ => self.fail(document, rejection),
        }
    }

    fn fail(&mut self, document: Document, rejection: Rejection) {
        let end = match rejection {
            Rejection::Invalid | Rejection::Conflict if !self.is_merge => {
                End::Outdated(self.remaining())
            }
            // Content that the server never accepts must not block the rest.
            _ if self.is_merge
                && document == Document::Status
                && self.pending.main
                && !rejection.may_pass_soon() =>
            {
                (self.step, self.pending.status) = (Step::Next, false);
                self.end = Progress::StatusRefused(rejection);
                return;
            }
            Rejection::NotFound => End::NotFound,
            _ => End::Failed,
        };
        self.end = Progress::Over(end);
    }

    /// The result of the patch, when nothing is left to send.
    #[must_use]
    pub fn end(self) -> End {
        match self.end {
            Progress::Over(end) => end,
            Progress::StatusRefused(Rejection::NotFound) => End::NotFound,
            Progress::StatusRefused(_) => End::Failed,
            Progress::Going => self.newest.map_or(End::Unchanged, End::Changed),
        }
    }

    /// How transformations have failed since this was last asked.
    pub fn failures(&mut self) -> Vec<TransformationFailure> {
        std::mem::take(&mut self.failures)
    }

    /// What remains to be written.
    #[must_use]
    pub fn remaining(&self) -> Patch {
        let status = if self.has_status { self.pending.status } else { self.pending.main };
        let is_left = |key: &str| if key == "status" { status } else { self.pending.main };
        let left = self.patch.merge.iter().filter(|(key, _)| is_left(key));
        let is_any = self.pending.main || self.pending.status;
        Patch {
            merge: left.map(|(key, value)| (key.clone(), value.clone())).collect(),
            transformations: match is_any {
                true => self.patch.transformations.clone(),
                false => Vec::new(),
            },
            conditions: match status {
                true => self.patch.conditions.clone(),
                false => ConditionChanges::default(),
            },
            ..Patch::default()
        }
    }

    fn known(&self) -> &Object {
        self.newest.as_ref().unwrap_or(self.object)
    }

    /// Whether a merge patch is for one version only; if so, no conflict has happened yet.
    fn version_of(&self, document: Document) -> Option<u32> {
        let has_conditions = self.patch.has_conditions() && !self.has_status;
        (document == Document::Status || has_conditions).then_some(0)
    }

    /// The merge patch of a document, for the newest known version only or for any.
    fn merge(&mut self, document: Document, versioned: Option<u32>) -> Request<'_> {
        self.merge_conditions();
        let has_status = self.has_status;
        let entries = self.merged.as_ref().unwrap_or(&self.patch.merge).iter();
        let part = Part::of(entries.filter(|(key, _)| document_of(key, has_status) == document));
        let guard = match versioned {
            Some(_) => Guard::by_version(self.newest.as_ref().unwrap_or(self.object)),
            None => Guard::by_uid(self.object, &part),
        };
        let is_for_uid = matches!(guard, Guard::Uid(_));
        self.sent = Some(Sent { document, versioned, is_question: false, is_for_uid });
        let to_status = document == Document::Status;
        Request { to_status, content: Content::Merge(part, guard) }
    }

    fn edit(&mut self, document: Document, operations: Vec<Operation>) -> Request<'_> {
        self.sent = Some(Sent { document, versioned: None, is_question: false, is_for_uid: false });
        let to_status = document == Document::Status;
        Request { to_status, content: Content::Json(operations) }
    }

    /// Merges conditions into the newest known list; most patches have none.
    fn merge_conditions(&mut self) {
        if self.patch.has_conditions() {
            let known = self.newest.as_ref().unwrap_or(self.object);
            let merged = self.patch.merge_for(known.stanza("status").as_deref()).into_owned();
            self.merged = Some(merged);
        }
    }

    fn is_changed(&self, document: Document) -> bool {
        let entries = self.merged.as_ref().unwrap_or(&self.patch.merge).iter();
        let entries = entries.filter(|(key, _)| document_of(key, self.has_status) == document);
        let is_metadata = |(key, _): &(&String, &Value)| *key == "metadata";
        let is_change = |(key, change): (&String, &Value)| {
            (key == "status" && self.object.lacks_status(change))
                || merge::is_change(self.object.stanza(key).as_deref(), change)
        };
        // Reading metadata takes longest.
        entries.clone().filter(|entry| !is_metadata(entry)).any(is_change)
            || entries.filter(is_metadata).any(is_change)
    }
}

fn document_of(key: &str, has_status: bool) -> Document {
    if has_status && key == "status" { Document::Status } else { Document::Main }
}

#[cfg(test)]
mod tests;
