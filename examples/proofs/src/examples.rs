//! The examples, included by their files, since programs cannot be imported.

macro_rules! examples {
    (
        files { $($name:ident = $path:literal;)* }
        libraries { $($whole:ident = $operator:ident;)* }
    ) => {
        $(
            /// The example with this name.
            #[expect(dead_code, reason = "the program around the operator is not run")]
            #[path = $path]
            pub mod $name;
        )*

        /// The names of all examples.
        pub const NAMES: &[&str] = &[$(stringify!($name),)* $(stringify!($whole),)*];

        /// The operator of an example; `None` if there is no example with this name.
        #[must_use]
        pub fn operator(name: &str) -> Option<kopf::Operator> {
            match name {
                $(stringify!($name) => Some($name::operator()),)*
                $(stringify!($whole) => Some($whole::$operator()),)*
                _ => None,
            }
        }
    };
}

examples! {
    files {
        minimal = "../../01-minimal/src/main.rs";
        typed = "../../02-typed/src/main.rs";
        exceptions = "../../03-exceptions/src/main.rs";
        events = "../../04-events/src/main.rs";
        handlers = "../../05-handlers/src/main.rs";
        subhandlers = "../../06-subhandlers/src/main.rs";
        filtering = "../../07-filtering/src/main.rs";
        embedding = "../../08-embedding/src/main.rs";
        hooks = "../../09-hooks/src/main.rs";
        daemons = "../../10-daemons/src/main.rs";
        timers = "../../11-timers/src/main.rs";
        indexing = "../../12-indexing/src/main.rs";
        builtins = "../../13-builtins/src/main.rs";
        many_kinds = "../../14-many-kinds/src/main.rs";
        testing = "../../15-testing/src/main.rs";
        admission = "../../16-admission/src/main.rs";
        children = "../../17-children/src/main.rs";
        desired = "../../18-desired/src/main.rs";
        peering = "../../19-peering/src/main.rs";
        conversion = "../../20-conversion/src/main.rs";
    }
    libraries {
        app_environment = from_environment;
        kopfexample = operator;
        load_test = operator;
        registry_mirror = operator;
        sample_kustomize = operator;
        simple_deployment = operator;
    }
}
