//! Reads the committed packs: named chunks, each compressed on its own.
//!
//! Owns the file format (its writer is `cargo xtask pack`) and the process-wide definitions. A
//! chunk is decompressed when something in it is first asked for; nothing is done at start-up.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use serde_json::value::RawValue;

use super::compile;
use super::ir::{Definition, Link};

static SCHEMAS: LazyLock<Definitions> =
    LazyLock::new(|| Definitions::new(Pack::open(include_bytes!("../../assets/schemas.pack"))));

/// A pack whose index is read and whose chunks are still compressed.
pub(crate) struct Pack {
    chunks: HashMap<String, (usize, usize, usize)>,
    frames: &'static [u8],
}

impl Pack {
    /// Reads the index of a committed pack.
    ///
    /// Panics when the pack is not one that `cargo xtask pack` wrote.
    pub(crate) fn open(bytes: &'static [u8]) -> Self {
        let (length, rest) = bytes.split_first_chunk::<4>().expect("a pack starts with a length");
        let length = u32::from_le_bytes(*length) as usize;
        let (index, frames) = rest.split_at(length);
        Self { chunks: serde_json::from_slice(index).expect("a pack has an index"), frames }
    }

    /// The compressed bytes of a chunk.
    pub(crate) fn frame(&self, name: &str) -> Option<&'static [u8]> {
        let (offset, compressed, _) = *self.chunks.get(name)?;
        Some(&self.frames[offset..offset + compressed])
    }

    /// The text of a chunk, or none when there is no such chunk.
    pub(crate) fn chunk(&self, name: &str) -> Option<String> {
        let (_, _, length) = *self.chunks.get(name)?;
        let frame = self.frame(name)?;
        let text = zstd::bulk::decompress(frame, length).expect("a chunk is a zstd frame");
        Some(String::from_utf8(text).expect("a chunk is JSON"))
    }

    /// The names of all chunks.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.chunks.keys().map(String::as_str)
    }
}

/// The definitions of all packages, loaded package by package.
struct Definitions {
    pack: Pack,
    packages: HashMap<String, OnceLock<HashMap<String, Definition>>>,
}

impl Definitions {
    fn new(pack: Pack) -> Self {
        let packages = pack.names().map(|name| (name.to_owned(), OnceLock::new())).collect();
        Self { pack, packages }
    }

    fn get(&'static self, name: &str) -> Option<&'static Definition> {
        let (package, _) = name.rsplit_once('.')?;
        let definitions = self.packages.get(package)?.get_or_init(|| self.load(package));
        definitions.get(name)
    }

    fn load(&self, package: &str) -> HashMap<String, Definition> {
        let text = self.pack.chunk(package).expect("the index names the package");
        let sources: HashMap<String, Box<RawValue>> =
            serde_json::from_str(&text).expect("a package is an object of definitions");
        let entry = |(name, source): (String, Box<RawValue>)| {
            (name.clone(), Definition::new(name, source.into(), compile::definition))
        };
        sources.into_iter().map(entry).collect()
    }
}

/// The built-in definition with this full name: `io.k8s.api.core.v1.Pod`.
pub(crate) fn definition(name: &str) -> Option<Link> {
    SCHEMAS.get(name).map(Link::Definition)
}

/// The full name of a built-in kind's definition.
pub(crate) fn definition_name(group: &str, version: &str, kind: &str) -> String {
    let package = match group {
        "" => "io.k8s.api.core".to_owned(),
        "meta.k8s.io" => "io.k8s.apimachinery.pkg.apis.meta".to_owned(),
        "apiextensions.k8s.io" => {
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions".to_owned()
        }
        "apiregistration.k8s.io" => "io.k8s.kube-aggregator.pkg.apis.apiregistration".to_owned(),
        group => format!("io.k8s.api.{}", group.split('.').next().unwrap_or(group)),
    };
    format!("{package}.{version}.{kind}")
}

/// The definition of a built-in kind; kinds that all groups share are found in any group.
pub(crate) fn kind(group: &str, version: &str, kind: &str) -> Option<Link> {
    let shared = || definition(&definition_name("meta.k8s.io", "v1", kind));
    definition(&definition_name(group, version, kind)).or_else(shared)
}
