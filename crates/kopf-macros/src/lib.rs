//! Attributes and derives; emits paths into `kopf`.
//!
//! Reads the tokens of one function and its attributes, emits the function unchanged, and next to
//! it a type of the same name that declares the handler. Knows only names, never types: checks that
//! depend on types are left to the compiler, placed at the user's own tokens.

mod collect;
mod convert;
mod duration;
mod expand;
mod filter;
mod function;
mod kind;
mod options;
mod selector;
mod signature;
mod testing;

use proc_macro::TokenStream;

macro_rules! attributes {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[proc_macro_attribute]
        pub fn $name(options: TokenStream, item: TokenStream) -> TokenStream {
            expand::attribute(stringify!($name), options.into(), item.into()).into()
        }
    )*};
}

attributes! {
    /// Called once for every object that has never been handled.
    create;
    /// Called for every essential change of an object.
    update;
    /// Called when the deletion of an object is requested, before it is gone.
    delete;
    /// Called for every object that exists when the operator starts.
    resume;
    /// Called when one field of an object changes, for any reason.
    field;
    /// Called for every raw event; errors are ignored.
    event;
    /// Validates an object before it is stored.
    validate;
    /// Validates and mutates an object before it is stored.
    mutate;
    /// Converts an object from one version of its resource to another.
    convert;
    /// Called before the operator connects to the cluster.
    startup;
    /// Called after everything else has stopped.
    cleanup;
    /// Returns the credentials for the cluster.
    login;
    /// Contributes to the response of the liveness probe.
    probe;
    /// Runs from the creation of an object to its deletion.
    daemon;
    /// Runs repeatedly while an object exists.
    timer;
    /// Maintains an in-memory index of objects.
    index;
    /// Returns the children that an object should have; they are applied, repaired and pruned.
    desired;
    /// Called when an object or one of its children changes, to draw conclusions from all of them.
    observe;
    /// A part of another handler, with its own retries.
    subhandler;
}

/// A test with its own API server and clock: `async fn name(world: World)`.
#[proc_macro_attribute]
pub fn test(options: TokenStream, item: TokenStream) -> TokenStream {
    testing::attribute(options.into(), item.into())
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

/// Collects the handlers of a module, or the methods of a type that is the operator's state.
///
/// On `mod databases { ... }`, it adds `databases::Handlers`; on `impl Cloud { ... }`, it makes
/// `Cloud` itself a name for all its handlers, which take `&self` from `State<Cloud>`.
#[proc_macro_attribute]
pub fn handlers(options: TokenStream, item: TokenStream) -> TokenStream {
    collect::attribute(options.into(), item.into())
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}
