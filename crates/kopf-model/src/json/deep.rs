//! Reads JSON that nests deeper than the general decoder supports, which stops at 128 levels.
//!
//! Servers accept objects with thousands of levels. Without a tree, changes of such an object would
//! not be detected, and its stored records could not be read.

use serde::de::DeserializeOwned;
use serde_json::Deserializer;

/// The number of levels that are read. Code that reads a tree recurses into it, and the threads
/// that run handlers have 2 MiB of stack.
pub(crate) const LEVELS_MAX: usize = 256;

/// Like the general decoder, with a higher limit; has no cost unless the general one fails.
pub(crate) fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(json).or_else(|error| {
        if !(GENERAL_LEVELS_MAX..=LEVELS_MAX).contains(&levels(json)) {
            return Err(error);
        }
        let mut deserializer = Deserializer::from_slice(json);
        deserializer.disable_recursion_limit();
        let value = T::deserialize(&mut deserializer)?;
        deserializer.end().map(|()| value)
    })
}

/// The limit of the general decoder.
const GENERAL_LEVELS_MAX: usize = 128;

/// The nesting depth of the brackets.
fn levels(json: &[u8]) -> usize {
    let (mut level, mut deepest) = (0_usize, 0);
    let (mut in_text, mut is_escaped) = (false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_text,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => {
                level += 1;
                deepest = deepest.max(level);
            }
            b'}' | b']' if !in_text => level = level.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests;
