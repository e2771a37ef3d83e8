//! The kinds of handlers: their attributes, markers and valid options.

use proc_macro2::{Ident, Span};

/// A kind of handler.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    /// The name of the attribute.
    pub(crate) attribute: &'static str,
    /// The name of the marker type and of the variant in the engine.
    pub(crate) marker: &'static str,
    /// The name of such a handler in error messages.
    pub(crate) title: &'static str,
    /// Whether it selects resources.
    pub(crate) selects: bool,
    /// Whether it handles an object.
    pub(crate) about_object: bool,
    /// Whether its function runs inline if it is not async, rather than on the pool.
    pub(crate) inlined: bool,
    /// Kinds of one family may share the type-erased function.
    pub(crate) family: Family,
    /// The options beyond the common ones.
    pub(crate) options: &'static [&'static [&'static str]],
}

/// Kinds whose functions return the same types.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    Storing,
    Index,
    Desired,
    Admission,
    Conversion,
    Activity,
}

/// Options of every handler.
pub(crate) const COMMON: &[&str] = &["id", "was", "param", "needs"];
/// Options of every handler with a selector.
pub(crate) const SELECTION: &[&str] =
    &["group", "version", "kind", "plural", "singular", "shortcut", "category", "resources"];
/// Options of handlers that select exactly one resource.
const EXACT: &[&str] = &["group", "version", "plural"];
const RETRYING: &[&str] = &["errors", "timeout", "retries", "backoff"];
const FILTERS: &[&str] = &["labels", "annotations", "when", "field", "value"];
const CHANGE: &[&str] = &["old", "new"];
const FAMILY: &[&str] = &["children"];
const GRANTS: &[&str] = &["grants", "binds"];
const WEBHOOK: &[&str] =
    &["operations", "subresource", "persistent", "side_effects", "ignore_failures"];
const DAEMON: &[&str] =
    &["initial_delay", "cancellation_backoff", "cancellation_timeout", "cancellation_polling"];
const TIMER: &[&str] = &["interval", "initial_delay", "sharp", "idle"];

const fn object(
    attribute: &'static str,
    marker: &'static str,
    title: &'static str,
    options: &'static [&'static [&'static str]],
) -> Kind {
    let (selects, about_object, inlined) = (true, true, false);
    let family = Family::Storing;
    Kind { attribute, marker, title, selects, about_object, inlined, family, options }
}

const fn activity(attribute: &'static str, marker: &'static str, title: &'static str) -> Kind {
    let (selects, about_object, inlined) = (false, false, false);
    let (family, options) = (Family::Activity, &[RETRYING] as &[&[&str]]);
    Kind { attribute, marker, title, selects, about_object, inlined, family, options }
}

const KINDS: &[Kind] = &[
    object("create", "Create", "a creation handler", &[RETRYING, FILTERS, FAMILY]),
    object("update", "Update", "an update handler", &[RETRYING, FILTERS, CHANGE, FAMILY]),
    object("delete", "Delete", "a deletion handler", &[RETRYING, FILTERS, FAMILY, &["optional"]]),
    object("resume", "Resume", "a resuming handler", &[RETRYING, FILTERS, FAMILY, &["deleted"]]),
    object("field", "Field", "a field handler", &[RETRYING, FILTERS, CHANGE, FAMILY]),
    object("event", "Event", "an event handler", &[FILTERS, FAMILY]),
    object("daemon", "Daemon", "a daemon", &[RETRYING, FILTERS, FAMILY, DAEMON]),
    object("timer", "Timer", "a timer", &[RETRYING, FILTERS, FAMILY, TIMER]),
    Kind {
        inlined: true,
        family: Family::Index,
        ..object("index", "Index", "an index", &[RETRYING, FILTERS])
    },
    Kind {
        inlined: true,
        family: Family::Desired,
        ..object("desired", "Desired", "desired children", &[RETRYING, FILTERS, FAMILY, GRANTS])
    },
    object("observe", "Observe", "an observer of children", &[RETRYING, FILTERS, FAMILY]),
    Kind {
        family: Family::Admission,
        ..object("validate", "Validate", "a validating webhook", &[FILTERS, WEBHOOK])
    },
    Kind {
        family: Family::Admission,
        ..object("mutate", "Mutate", "a mutating webhook", &[FILTERS, WEBHOOK])
    },
    // Pure computation for thousands of objects in a row: not worth a thread each.
    Kind {
        inlined: true,
        family: Family::Conversion,
        ..object("convert", "Convert", "a conversion", &[&["to"]])
    },
    Kind {
        selects: false,
        ..object("subhandler", "Sub", "a sub-handler", &[RETRYING, FILTERS, CHANGE])
    },
    activity("startup", "Startup", "a startup handler"),
    activity("cleanup", "Cleanup", "a cleanup handler"),
    activity("login", "Login", "a login handler"),
    activity("probe", "Probe", "a probe"),
];

impl Kind {
    /// The kind of an attribute.
    pub(crate) fn of(attribute: &str) -> Option<Self> {
        KINDS.iter().copied().find(|kind| kind.attribute == attribute)
    }

    /// The marker type as an identifier.
    pub(crate) fn marker(self) -> Ident {
        Ident::new(self.marker, Span::call_site())
    }

    /// Whether the results of its functions are stored in the status.
    pub(crate) fn stores(self) -> bool {
        self.family == Family::Storing && self.attribute != "event"
    }

    /// All valid options, the most common first.
    pub(crate) fn all_options(self) -> impl Iterator<Item = &'static str> {
        let selection = match self.family {
            Family::Conversion => EXACT,
            _ if self.selects => SELECTION,
            _ => &[],
        };
        let own = self.options.iter().copied().flatten();
        COMMON.iter().chain(own).chain(selection).copied()
    }

    /// Whether the option is valid for this kind.
    pub(crate) fn has_option(self, name: &str) -> bool {
        self.all_options().any(|option| option == name)
    }

    /// Whether the option is valid for any kind.
    pub(crate) fn is_any_option(name: &str) -> bool {
        KINDS.iter().any(|kind| kind.has_option(name))
    }
}
