//! The difference of two texts, line by line, for users.

use std::fmt::Write as _;

use similar::{ChangeTag, TextDiff};

/// How many common lines are shown around each difference.
const CONTEXT: usize = 3;
/// The maximum number of lines shown.
const LINES_MAX: usize = 120;

/// The lines that differ, with some context; empty for equal texts.
pub(crate) fn between(expected: &str, found: &str) -> String {
    let difference = TextDiff::from_lines(expected, found);
    let groups = difference.grouped_ops(CONTEXT);
    let mut changes = groups.iter().flatten().flat_map(|part| difference.iter_changes(part));
    let mut text = String::new();
    for change in changes.by_ref().take(LINES_MAX) {
        let mark = match change.tag() {
            ChangeTag::Equal => ' ',
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
        };
        let _infallible = writeln!(text, "{mark} {}", change.value().trim_end_matches('\n'));
    }
    if changes.next().is_some() {
        text += "...\n";
    }
    text
}
