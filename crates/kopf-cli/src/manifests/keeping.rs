//! Writes generated files to a folder without overwriting files that users have changed.
//!
//! A list in the folder records the generated files. A file that differs from its record was
//! changed by a user: it is kept, and the new text is written next to it.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use sha2::{Digest as _, Sha256};

/// The list of generated files: a digest and a name per line.
const LIST: &str = ".kopf-generated";
/// The extension for a file that is not overwritten.
const NEW_EXTENSION: &str = "new";

/// The result of writing files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Files that users have changed; the generated text is in `NAME.new`.
    pub kept: Vec<String>,
}

/// Writes the files, by their names in the folder; overwrites changed ones only if forced.
///
/// All texts are written to temporary files first, so that a full disk leaves the old files intact.
///
/// # Errors
/// Fails if the folder cannot be written.
pub fn write(folder: &Path, files: &[(String, String)], is_forced: bool) -> io::Result<Written> {
    std::fs::create_dir_all(folder)?;
    let list = std::fs::read_to_string(folder.join(LIST)).unwrap_or_default();
    let generated: BTreeMap<&str, &str> = list
        .lines()
        .filter_map(|line| line.split_once("  "))
        .map(|(digest, name)| (name, digest))
        .collect();
    let mut written = Written::default();
    let mut places = Vec::new();
    for (name, text) in files {
        let is_kept =
            !is_forced && is_changed(&folder.join(name), generated.get(name.as_str()), text);
        if is_kept {
            written.kept.push(name.clone());
        }
        let place = if is_kept { format!("{name}.{NEW_EXTENSION}") } else { name.clone() };
        places.push((folder.join(&place), folder.join(format!("{place}.kopf-writing")), text));
    }
    let staged = places.iter().try_for_each(|(place, staging, text)| {
        place.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(staging, text)
    });
    if let Err(error) = staged {
        for (_, staging, _) in &places {
            // The first error is the one to report; a leftover file does no harm.
            let _ = std::fs::remove_file(staging);
        }
        return Err(error);
    }
    places.iter().try_for_each(|(place, staging, _)| std::fs::rename(staging, place))?;
    let lines = files.iter().map(|(name, text)| format!("{}  {name}\n", digest(text)));
    std::fs::write(folder.join(LIST), lines.collect::<String>())?;
    Ok(written)
}

/// Whether a user has changed a file since it was generated, so that overwriting would lose
/// changes.
fn is_changed(path: &Path, generated: Option<&&str>, text: &str) -> bool {
    let Ok(present) = std::fs::read_to_string(path) else { return false };
    present != text && generated.is_none_or(|generated| **generated != digest(&present))
}

fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
