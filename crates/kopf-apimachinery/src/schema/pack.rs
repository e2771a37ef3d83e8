//! The schemas of built-in kinds, read from the committed pack.
//!
//! Responsible for the process-wide definitions. A package is decompressed on first use; nothing is
//! done at start-up.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use serde_json::value::RawValue;

use super::compile;
use super::ir::{Definition, Link};
use crate::pack::{Pack, definition_name};

static SCHEMAS: LazyLock<Definitions> =
    LazyLock::new(|| Definitions::new(Pack::open(include_bytes!("../../assets/schemas.pack"))));

/// Free content that upstream always treats as one value.
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";
/// Kinds behind a feature gate that was off in the server from which the pack was made.
const MUTATING_POLICIES: &str = include_str!("../data/mutating-policies.json");
/// The versions of those kinds.
const GATED_VERSIONS: [&str; 2] = ["v1beta1", "v1alpha1"];

fn gated_package(version: &str) -> String {
    format!("io.k8s.api.admissionregistration.{version}")
}

/// The definitions of all packages, loaded package by package.
struct Definitions {
    pack: Pack,
    packages: HashMap<String, OnceLock<HashMap<String, Definition>>>,
}

impl Definitions {
    fn new(pack: Pack) -> Self {
        let gated = GATED_VERSIONS.map(gated_package);
        let names = pack.names().map(str::to_owned).chain(gated);
        let packages = names.map(|name| (name, OnceLock::new())).collect();
        Self { pack, packages }
    }

    fn get(&'static self, name: &str) -> Option<&'static Definition> {
        let (package, _) = name.rsplit_once('.')?;
        let definitions = self.packages.get(package)?.get_or_init(|| self.load(package));
        definitions.get(name)
    }

    fn load(&self, package: &str) -> HashMap<String, Definition> {
        let gated = GATED_VERSIONS.into_iter().find(|version| gated_package(version) == package);
        let text = match gated {
            Some(version) => MUTATING_POLICIES.replace("VERSION", version),
            None => self.pack.chunk(package).expect("the index names the package"),
        };
        let sources: HashMap<String, Box<RawValue>> =
            serde_json::from_str(&text).expect("a package is an object of definitions");
        let entry = |(name, source): (String, Box<RawValue>)| {
            let compile = match name.as_str() {
                RAW_EXTENSION => compile::raw_definition,
                _ => compile::definition,
            };
            (name.clone(), Definition::new(name, source.into(), compile))
        };
        sources.into_iter().map(entry).collect()
    }
}

/// The built-in definition with this full name: `io.k8s.api.core.v1.Pod`.
pub(crate) fn definition(name: &str) -> Option<Link> {
    SCHEMAS.get(name).map(Link::Definition)
}

/// The definition of a built-in kind; kinds common to all groups are found in any group.
pub(crate) fn kind(group: &str, version: &str, kind: &str) -> Option<Link> {
    let shared = || definition(&definition_name("meta.k8s.io", "v1", kind));
    definition(&definition_name(group, version, kind)).or_else(shared)
}
