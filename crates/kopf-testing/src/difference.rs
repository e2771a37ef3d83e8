//! The difference of two texts, line by line, for people.

use std::fmt::Write as _;

/// How many common lines are shown around each difference.
const CONTEXT: usize = 3;
/// How many lines are shown altogether.
const LINES_MAX: usize = 120;
/// Longer texts are compared as a whole, since the table of all pairs would be too big.
const PAIRS_MAX: usize = 4_000_000;

/// The lines that differ, with some of those around them; empty for equal texts.
pub(crate) fn between(expected: &str, found: &str) -> String {
    if expected == found {
        return String::new();
    }
    let (expected, found): (Vec<&str>, Vec<&str>) =
        (expected.lines().collect(), found.lines().collect());
    let marked = marked(&expected, &found);
    let is_near = |at: usize| {
        let near = at.saturating_sub(CONTEXT)..marked.len().min(at + CONTEXT + 1);
        marked[near].iter().any(|(mark, _)| *mark != ' ')
    };
    let mut text = String::new();
    let mut shown = 0;
    for (at, (mark, line)) in marked.iter().enumerate() {
        if is_near(at) && shown < LINES_MAX {
            shown += 1;
            let _infallible = writeln!(text, "{mark} {line}");
        }
    }
    if shown == LINES_MAX {
        text += "...\n";
    }
    text
}

/// All lines of both texts, those in only one of them with a mark.
fn marked<'a>(expected: &[&'a str], found: &[&'a str]) -> Vec<(char, &'a str)> {
    let mut lines = Vec::new();
    if expected.len() * found.len() > PAIRS_MAX {
        lines.extend(expected.iter().map(|line| ('-', *line)));
        lines.extend(found.iter().map(|line| ('+', *line)));
        return lines;
    }
    let common = common_lines(expected, found);
    let (mut one, mut other) = (0, 0);
    while one < expected.len() || other < found.len() {
        let is_left = |one: usize, other: usize| common[one][other];
        if one < expected.len() && other < found.len() && expected[one] == found[other] {
            lines.push((' ', expected[one]));
            (one, other) = (one + 1, other + 1);
        } else if other == found.len()
            || (one < expected.len() && is_left(one + 1, other) >= is_left(one, other + 1))
        {
            lines.push(('-', expected[one]));
            one += 1;
        } else {
            lines.push(('+', found[other]));
            other += 1;
        }
    }
    lines
}

/// How many lines the rests of both texts have in common, by where the rests begin.
fn common_lines(expected: &[&str], found: &[&str]) -> Vec<Vec<u32>> {
    let mut common = vec![vec![0; found.len() + 1]; expected.len() + 1];
    for one in (0..expected.len()).rev() {
        for other in (0..found.len()).rev() {
            common[one][other] = if expected[one] == found[other] {
                common[one + 1][other + 1] + 1
            } else {
                common[one + 1][other].max(common[one][other + 1])
            };
        }
    }
    common
}
