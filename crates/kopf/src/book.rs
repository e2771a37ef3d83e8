//! The book pages whose code must compile. Exists only for `cargo test --doc`.

macro_rules! pages {
    ($($page:ident: $path:literal,)*) => {$(
        #[doc = include_str!(concat!("../../../docs/src/", $path))]
        struct $page;
    )*};
}

/// Its examples are tests and need the test kit.
#[cfg(feature = "testing")]
#[doc = include_str!("../../../docs/src/testing.md")]
struct Testing;

/// Its examples are tests and need the test kit.
#[cfg(feature = "testing")]
#[doc = include_str!("../../../docs/src/recipes.md")]
struct Recipes;

/// Its last example is a test and needs the test kit.
#[cfg(feature = "testing")]
#[doc = include_str!("../../../docs/src/tutorial.md")]
struct Tutorial;

pages! {
    Activities: "handlers/activities.md",
    Admission: "handlers/admission.md",
    Background: "handlers/background.md",
    Changing: "handlers/changing.md",
    Conversion: "handlers/conversion.md",
    Events: "handlers/events.md",
    Fields: "handlers/fields.md",
    Indexes: "handlers/indexes.md",
    Subhandlers: "handlers/subhandlers.md",
    Concepts: "concepts.md",
    Desired: "handlers/desired.md",
    Errors: "reference/errors.md",
    Filters: "reference/filters.md",
    FromPython: "reference/from-python.md",
    Idempotence: "idempotence.md",
    Observing: "handlers/observing.md",
    Parameters: "reference/parameters.md",
    Persistence: "reference/persistence.md",
    Scaling: "scaling.md",
    Settings: "reference/settings.md",
    Status: "handlers/status.md",
    Toolkit: "toolkit.md",
    Running: "running.md",
}
