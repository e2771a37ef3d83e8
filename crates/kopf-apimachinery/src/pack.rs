//! Reads the committed packs: named chunks, each compressed on its own.
//!
//! Responsible for the file format; `cargo xtask pack` writes the files. A chunk is decompressed on
//! first use.

use std::collections::HashMap;

/// A pack whose index has been read and whose chunks are still compressed.
pub struct Pack {
    chunks: HashMap<String, (usize, usize, usize)>,
    frames: &'static [u8],
}

impl Pack {
    /// Reads the index of a committed pack.
    ///
    /// Panics if the pack was not written by `cargo xtask pack`.
    pub fn open(bytes: &'static [u8]) -> Self {
        let (length, rest) = bytes.split_first_chunk::<4>().expect("a pack starts with a length");
        let length = u32::from_le_bytes(*length) as usize;
        let (index, frames) = rest.split_at(length);
        Self { chunks: serde_json::from_slice(index).expect("a pack has an index"), frames }
    }

    /// The compressed bytes of a chunk.
    pub fn frame(&self, name: &str) -> Option<&'static [u8]> {
        let (offset, compressed, _) = *self.chunks.get(name)?;
        Some(&self.frames[offset..offset + compressed])
    }

    /// The text of a chunk; `None` if there is no such chunk.
    pub fn chunk(&self, name: &str) -> Option<String> {
        let (_, _, length) = *self.chunks.get(name)?;
        let frame = self.frame(name)?;
        let text = zstd::bulk::decompress(frame, length).expect("a chunk is a zstd frame");
        Some(String::from_utf8(text).expect("a chunk is JSON"))
    }

    /// The names of all chunks.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.chunks.keys().map(String::as_str)
    }
}

/// The full name of a built-in kind's definition.
pub fn definition_name(group: &str, version: &str, kind: &str) -> String {
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
