//! What differs between two values of a Go type, in the form of go-cmp's `Diff`.
//!
//! Pure. Decides which parts are shown, how much of them, and whether their types are named;
//! `layout` makes text of that. A changed part is shown twice, with marks; two equal neighbours on
//! each side are shown in short, and the others are counted.

use super::layout::{Item, Mark, Text};
use super::value::{Go, Struct};
use crate::go_print::quoted;

/// The number of equal items that are shown beside a changed one.
const NEIGHBOURS: usize = 2;
/// The number of changed items of one struct, list or map that are shown.
const CHANGES_MAX: usize = 16;
/// How many items an equal struct, list or map shows, and how many bytes of a text.
const EQUAL_ITEMS_MAX: usize = 4;
const EQUAL_TEXT_MAX: usize = 64;
/// How often a removed or inserted value halves what it shows, from 16 items and 256 bytes.
const DEPTH: u32 = 3;
const ELLIPSIS: &str = "...";

/// Whether the type of a value is named: items of lists and maps have the type of their list.
#[derive(Clone, Copy, PartialEq)]
enum Types {
    Named,
    Known,
}

/// What hidden items are called: one of them, and several.
type Nouns = (&'static str, &'static str);

/// One field, item or entry on both sides.
struct Pair<'a> {
    key: String,
    old: Option<&'a Go>,
    new: Option<&'a Go>,
}

impl Pair<'_> {
    fn is_equal(&self) -> bool {
        self.old == self.new
    }
}

/// The differences; `None` if the values are equal.
pub(super) fn difference(old: &Go, new: &Go) -> Option<Text> {
    (old != new).then(|| changed(old, new, Types::Named))
}

/// Two different values of one type, merged.
fn changed(old: &Go, new: &Go, types: Types) -> Text {
    let shows_type =
        |go_type: &str| if types == Types::Named { go_type.to_owned() } else { String::new() };
    match (old, new) {
        (Go::Pointer(old), Go::Pointer(new)) => changed(old, new, types).after("&"),
        (Go::Struct(left), Go::Struct(right)) => {
            let pairs = pairs_of_structs(left, right);
            block(shows_type(&left.go_type), merged(&pairs, ("field", "fields"), Types::Named))
        }
        (Go::List { go_type, items: left }, Go::List { items: right, .. }) => {
            let pairs = pairs_of_lists(left, right);
            block(shows_type(go_type), merged(&pairs, ("element", "elements"), Types::Known))
        }
        (Go::Map { go_type, entries: left }, Go::Map { entries: right, .. }) => {
            let pairs = pairs_of_maps(left, right);
            block(shows_type(go_type), merged(&pairs, ("entry", "entries"), Types::Known))
        }
        // Only at the top; inside, such pairs are two marked items.
        _ => whole(new, types, DEPTH),
    }
}

fn block(go_type: String, items: Vec<Item>) -> Text {
    Text::Block { open: go_type + "{", items }
}

fn pairs_of_structs<'a>(old: &'a Struct, new: &'a Struct) -> Vec<Pair<'a>> {
    let fields = old.fields.iter().zip(&new.fields);
    let pair = |((name, old), (_, new)): (&'a (&str, Go), &'a (&str, Go))| Pair {
        key: (*name).to_owned(),
        old: Some(old),
        new: Some(new),
    };
    fields.map(pair).collect()
}

/// The entries of both maps in the order of their keys.
fn pairs_of_maps<'a>(old: &'a [(String, Go)], new: &'a [(String, Go)]) -> Vec<Pair<'a>> {
    let find = |entries: &'a [(String, Go)], key: &str| {
        entries.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    };
    let mut keys: Vec<&String> = old.iter().chain(new).map(|(key, _)| key).collect();
    keys.sort();
    keys.dedup();
    keys.into_iter()
        .map(|key| Pair { key: key.clone(), old: find(old, key), new: find(new, key) })
        .collect()
}

/// The items of both lists: equal and similar ones side by side, with as few others as possible.
fn pairs_of_lists<'a>(old: &'a [Go], new: &'a [Go]) -> Vec<Pair<'a>> {
    let costs = costs(old, new);
    let (mut left, mut right) = (0, 0);
    let mut pairs = Vec::new();
    let pair = |old: Option<&'a Go>, new: Option<&'a Go>| Pair { key: String::new(), old, new };
    while left < old.len() || right < new.len() {
        let rest = costs[left][right];
        match (old.get(left), new.get(right)) {
            (Some(from), Some(to))
                if are_similar(from, to)
                    && rest == costs[left + 1][right + 1] + usize::from(from != to) =>
            {
                pairs.push(pair(Some(from), Some(to)));
                (left, right) = (left + 1, right + 1);
            }
            (Some(from), _) if rest == costs[left + 1][right] + 1 => {
                pairs.push(pair(Some(from), None));
                left += 1;
            }
            (_, to) => {
                pairs.push(pair(None, to));
                right += 1;
            }
        }
    }
    pairs
}

/// How many items must change, be removed or inserted after each pair of places.
fn costs(old: &[Go], new: &[Go]) -> Vec<Vec<usize>> {
    let mut costs = vec![vec![0; new.len() + 1]; old.len() + 1];
    for left in (0..=old.len()).rev() {
        for right in (0..=new.len()).rev() {
            costs[left][right] = match (old.get(left), new.get(right)) {
                (None, _) => new.len() - right,
                (_, None) => old.len() - left,
                (Some(from), Some(to)) if from == to => costs[left + 1][right + 1],
                (Some(from), Some(to)) => {
                    let mut least = costs[left + 1][right].min(costs[left][right + 1]) + 1;
                    if are_similar(from, to) {
                        least = least.min(costs[left + 1][right + 1] + 1);
                    }
                    least
                }
            };
        }
    }
    costs
}

/// Whether at most one more of the simple values inside differs than is equal.
fn are_similar(old: &Go, new: &Go) -> bool {
    let (equal, different) = tally(old, new);
    equal + 1 >= different
}

/// How many simple values are equal and different.
fn tally(old: &Go, new: &Go) -> (usize, usize) {
    let inside: Vec<Pair<'_>> = match (old, new) {
        (Go::Pointer(old), Go::Pointer(new)) => return tally(old, new),
        (Go::Struct(left), Go::Struct(right)) if left.amount.is_none() => {
            pairs_of_structs(left, right)
        }
        (Go::List { items: left, .. }, Go::List { items: right, .. }) => {
            pairs_of_lists(left, right)
        }
        (Go::Map { entries: left, .. }, Go::Map { entries: right, .. }) => {
            pairs_of_maps(left, right)
        }
        _ if old == new => return (1, 0),
        _ => return (0, 1),
    };
    let counts = inside.iter().map(|pair| match (pair.old, pair.new) {
        (Some(old), Some(new)) => tally(old, new),
        _ => (0, 1),
    });
    counts.fold((0, 0), |sum, (equal, different)| (sum.0 + equal, sum.1 + different))
}

/// The items of a struct, list or map in which something differs.
fn merged(pairs: &[Pair<'_>], nouns: Nouns, types: Types) -> Vec<Item> {
    let mut items = Vec::new();
    let (mut seen, mut changes) = (0, 0);
    for run in pairs.chunk_by(|left, right| left.is_equal() == right.is_equal()) {
        if changes >= CHANGES_MAX {
            items.push(Item::rest(Some(summary(&pairs[seen..], nouns))));
            break;
        }
        let is_last = seen + run.len() == pairs.len();
        if run[0].is_equal() {
            neighbours(run, seen > 0, !is_last, nouns, &mut items);
        } else {
            changes += run.len();
            run.iter().for_each(|pair| marked(pair, types, &mut items));
        }
        seen += run.len();
    }
    items
}

/// Equal items: the first and the last ones, if changed items are before and after them.
fn neighbours(
    run: &[Pair<'_>],
    is_after_change: bool,
    is_before_change: bool,
    nouns: Nouns,
    items: &mut Vec<Item>,
) {
    let first = if is_after_change { NEIGHBOURS.min(run.len()) } else { 0 };
    let mut last = if is_before_change { NEIGHBOURS.min(run.len() - first) } else { 0 };
    if run.len() - first - last == 1 {
        last += 1;
    }
    let show = |pair: &Pair<'_>| {
        let text = pair.new.map_or_else(|| Text::line("nil"), equal);
        Item::new(Mark::None, &pair.key, text)
    };
    items.extend(run[..first].iter().map(show));
    let hidden = &run[first..run.len() - last];
    if !hidden.is_empty() {
        items.push(Item::rest(Some(summary(hidden, nouns))));
    }
    items.extend(run[run.len() - last..].iter().map(show));
}

/// What hidden items are: `2 identical fields`.
fn summary(pairs: &[Pair<'_>], (one, many): Nouns) -> String {
    let count =
        |is_counted: fn(&Pair<'_>) -> bool| pairs.iter().filter(|it| is_counted(it)).count();
    let counts = [
        (count(|it| it.is_equal()), "identical"),
        (count(|it| it.new.is_none()), "removed"),
        (count(|it| it.old.is_none()), "inserted"),
        (count(|it| !it.is_equal() && it.old.is_some() && it.new.is_some()), "modified"),
    ];
    let parts: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let noun = if pairs.len() == 1 { one } else { many };
    let listed = match parts.as_slice() {
        [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        parts => parts.join(""),
    };
    format!("{listed} {noun}")
}

/// One changed item: merged if both sides have parts, else as removed and inserted.
fn marked(pair: &Pair<'_>, types: Types, items: &mut Vec<Item>) {
    if let (Some(old), Some(new)) = (pair.old, pair.new)
        && has_branches(old, new)
    {
        items.push(Item::new(Mark::None, &pair.key, changed(old, new, types)));
        return;
    }
    // The targets of two pointers were compared, so they are shown, not the pointers.
    let are_pointers = matches!((pair.old, pair.new), (Some(Go::Pointer(_)), Some(Go::Pointer(_))));
    let show = |value: &Go| match value {
        Go::Pointer(held) if are_pointers => whole(held, types, DEPTH).after("&"),
        other => whole(other, types, DEPTH),
    };
    for (mark, side) in [(Mark::Removed, pair.old), (Mark::Inserted, pair.new)] {
        items.extend(side.map(|value| Item::new(mark, &pair.key, show(value))));
    }
}

/// Whether two values have more than one part to compare.
fn has_branches(old: &Go, new: &Go) -> bool {
    match (old, new) {
        (Go::Pointer(old), Go::Pointer(new)) => has_branches(old, new),
        (Go::Struct(left), Go::Struct(right)) if left.amount.is_none() => {
            match pairs_of_structs(left, right).as_slice() {
                [Pair { old: Some(old), new: Some(new), .. }] => has_branches(old, new),
                pairs => pairs.len() > 1,
            }
        }
        (Go::List { items: left, .. }, Go::List { items: right, .. }) => {
            is_branched(&pairs_of_lists(left, right))
        }
        (Go::Map { entries: left, .. }, Go::Map { entries: right, .. }) => {
            is_branched(&pairs_of_maps(left, right))
        }
        _ => false,
    }
}

fn is_branched(pairs: &[Pair<'_>]) -> bool {
    match pairs {
        [Pair { old: Some(old), new: Some(new), .. }] => has_branches(old, new),
        pairs => pairs.len() > 1,
    }
}

/// An equal value, in short and without its type.
fn equal(value: &Go) -> Text {
    let list = |items: &mut dyn Iterator<Item = (String, &Go)>| {
        let mut shown = Vec::new();
        for (key, value) in items {
            if shown.len() == EQUAL_ITEMS_MAX {
                shown.push(Item::rest(None));
                break;
            }
            shown.push(Item::new(Mark::None, &key, equal(value)));
        }
        block(String::new(), shown)
    };
    match value {
        Go::Pointer(held) => equal(held).after("&"),
        Go::Struct(it) if it.amount.is_some() => {
            let fields = it.fields.iter().filter(|(_, field)| !field.is_zero());
            let item = |(name, field): &(&str, Go)| {
                let text = match field {
                    Go::Struct(_) => Text::line("{...}"),
                    other => equal(other),
                };
                Item::new(Mark::None, name, text)
            };
            block(String::new(), fields.map(item).collect())
        }
        Go::Struct(it) => {
            // Fields after the last one that is shown count even if they are zero.
            let mut shown = Vec::new();
            for (name, field) in &it.fields {
                if shown.len() == EQUAL_ITEMS_MAX {
                    shown.push(Item::rest(None));
                    break;
                }
                if !field.is_zero() {
                    shown.push(Item::new(Mark::None, name, equal(field)));
                }
            }
            block(String::new(), shown)
        }
        Go::List { items, .. } => list(&mut items.iter().map(|item| (String::new(), item))),
        Go::Map { entries, .. } => list(&mut entries.iter().map(|(key, it)| (key.clone(), it))),
        simple => Text::line(shown(simple, EQUAL_TEXT_MAX)),
    }
}

/// A removed or inserted value, with less of each deeper part.
fn whole(value: &Go, types: Types, depth: u32) -> Text {
    let items_max = ((1 << depth) >> 1) << 2;
    let deeper = depth.saturating_sub(1);
    let named = |go_type: &str| {
        if types == Types::Named { go_type.to_owned() } else { String::new() }
    };
    let limited = |items: Vec<Item>| {
        let mut items = items;
        if items.len() > items_max {
            items.truncate(items_max);
            items.push(Item::rest(None));
        }
        items
    };
    match value {
        Go::Pointer(held) => match held.text_of_pointer() {
            Some(text) => Text::line(format!("s{}", short(&text, text_max(depth)))),
            None => whole(held, types, depth).after("&"),
        },
        Go::Struct(it) => {
            let fields = it.fields.iter().filter(|(_, field)| !field.is_zero());
            let items = fields.map(|(name, field)| {
                Item::new(Mark::None, name, whole(field, Types::Named, deeper))
            });
            block(named(&it.go_type), limited(items.collect()))
        }
        Go::List { go_type, items } => {
            let items =
                items.iter().map(|it| Item::new(Mark::None, "", whole(it, Types::Known, deeper)));
            block(named(go_type), limited(items.collect()))
        }
        Go::Map { go_type, entries } => {
            let items = entries
                .iter()
                .map(|(key, it)| Item::new(Mark::None, key, whole(it, Types::Known, deeper)));
            block(named(go_type), limited(items.collect()))
        }
        simple => Text::line(shown(simple, text_max(depth))),
    }
}

fn text_max(depth: u32) -> usize {
    (1 << depth) << 5
}

fn shown(value: &Go, text_max: usize) -> String {
    match value {
        Go::Plain(shown) => shown.clone(),
        Go::Text(text) => short(text, text_max),
        _ => "nil".to_owned(),
    }
}

/// A quoted text, cut if it is too long; between backquotes if that saves escapes.
fn short(text: &str, text_max: usize) -> String {
    if text.len() > text_max + ELLIPSIS.len() {
        let end = (0..=text_max).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        return in_quotes(&text[..end]) + ELLIPSIS;
    }
    in_quotes(text)
}

fn in_quotes(text: &str) -> String {
    let escaped = quoted(text);
    let is_raw = |letter: char| letter == '\t' || !(letter == '`' || letter.is_control());
    if escaped.len() > text.len() + 2 && text.chars().all(is_raw) {
        return format!("`{text}`");
    }
    escaped
}
