//! The objects and their states, as a table that fits the window.
//!
//! Pure: renders chronicles for a size and the current time as lines.

use jiff::Timestamp;
use kopf_engine::journal::{AttemptEnding, Chronicle, Episode};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::screen::Paint;

/// Narrower windows lose a column.
const WIDE: usize = 80;
const MIDDLE: usize = 60;
const NARROW: usize = 40;

/// The maximum width of names; longer ones are truncated.
const NAME_MAX: usize = 40;

/// The size of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) width: usize,
    pub(super) rows_max: usize,
}

/// The state of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Health {
    Bad,
    Waiting,
    Good,
    Gone,
}

struct Row {
    health: Health,
    sequence: u64,
    kind: String,
    object: String,
    state: String,
    last: String,
    age: String,
}

/// The table including its header; no lines if there are no objects.
pub(super) fn render<'a>(
    objects: impl Iterator<Item = &'a Chronicle>,
    room: Room,
    now: Timestamp,
    paint: Paint,
) -> Vec<String> {
    let mut rows: Vec<Row> = objects.map(|object| row(object, now)).collect();
    if rows.is_empty() || room.rows_max < 2 {
        return Vec::new();
    }
    rows.sort_by_key(|row| (row.health, std::cmp::Reverse(row.sequence)));
    let shown = rows.len().min(room.rows_max - 1);
    let hidden = rows.len() - shown;
    rows.truncate(shown);
    let mut lines = layout(&rows, room.width, paint);
    if hidden > 0 {
        lines.push(paint.dim(&fit(&format!("… and {hidden} more"), room.width)));
    }
    lines
}

fn layout(rows: &[Row], width: usize, paint: Paint) -> Vec<String> {
    type Column = (&'static str, fn(&Row) -> &str);
    let mut columns: Vec<Column> = vec![("OBJECT", |row| &row.object), ("STATE", |row| &row.state)];
    if width >= MIDDLE {
        columns.insert(0, ("KIND", |row| &row.kind));
    }
    if width >= WIDE {
        columns.push(("AGE", |row| &row.age));
    }
    if width >= NARROW {
        columns.push(("LAST", |row| &row.last));
    }
    let count = columns.len();
    let natural = |(title, cell): &Column| {
        let widest = rows.iter().map(|row| cell(row).width()).max().unwrap_or(0);
        widest.max(title.len()).min(NAME_MAX)
    };
    let widths: Vec<usize> = columns.iter().map(natural).collect();
    let line = |cell: &dyn Fn(usize) -> String| {
        let mut left = width;
        let mut text = Vec::new();
        for (index, wanted) in widths.iter().enumerate() {
            let is_last = index + 1 == count;
            let room = if is_last { left } else { (*wanted).min(left) };
            let part = fit(&cell(index), room);
            let padding = if is_last { 0 } else { room - part.width() };
            left = left.saturating_sub(room + 2);
            text.push((index, format!("{part}{}", " ".repeat(padding))));
        }
        text
    };
    let join = |parts: Vec<String>| parts.join("  ").trim_end().to_owned();
    let mut lines = Vec::new();
    let head = line(&|index| columns[index].0.to_owned());
    lines.push(paint.dim(&join(head.into_iter().map(|(_, text)| text).collect())));
    for row in rows {
        let cells = line(&|index| (columns[index].1)(row).to_owned()).into_iter();
        let painted = cells.map(|(index, text)| match columns[index].0 {
            "STATE" => row.health.paint(&text, paint),
            "KIND" | "AGE" => paint.dim(&text),
            _ => text,
        });
        lines.push(join(painted.collect()));
    }
    lines
}

impl Health {
    fn paint(self, text: &str, paint: Paint) -> String {
        match self {
            Self::Bad => paint.red(text),
            Self::Waiting => paint.yellow(text),
            Self::Good => paint.green(text),
            Self::Gone => paint.dim(text),
        }
    }
}

fn row(object: &Chronicle, now: Timestamp) -> Row {
    let (health, state) = state(object, now);
    let attempts = object.entries.iter().rev();
    let last = attempts.into_iter().find_map(|entry| match &entry.episode {
        Episode::Attempt { handler, ending, error, number, milliseconds, .. } => {
            let tries = if *number > 1 { format!(" (attempt {number})") } else { String::new() };
            Some(match (ending, error) {
                (AttemptEnding::Success, _) => {
                    format!("{handler} succeeded in {milliseconds} ms{tries}")
                }
                (_, Some(error)) => format!("{handler}{tries}: {error}"),
                (_, None) => format!("{handler}{tries} failed"),
            })
        }
        _ => None,
    });
    let news = object.entries.back().map(|entry| now.duration_since(entry.at).as_secs());
    Row {
        health,
        sequence: object.sequence,
        kind: object.kind.clone(),
        object: match &object.namespace {
            Some(namespace) => format!("{namespace}/{}", object.name),
            None => object.name.clone(),
        },
        state,
        last: one_line(&last.unwrap_or_default()),
        age: news.map(age).unwrap_or_default(),
    }
}

fn state(object: &Chronicle, now: Timestamp) -> (Health, String) {
    let situation = &object.situation;
    if situation.gone {
        return (Health::Gone, "gone".into());
    }
    if situation.error.is_some() {
        return (Health::Bad, "trouble".into());
    }
    let mut endings = std::collections::BTreeMap::new();
    for entry in &object.entries {
        if let Episode::Attempt { handler, ending, next_at, .. } = &entry.episode {
            endings.insert(handler, (*ending, *next_at));
        }
    }
    if endings.values().any(|(ending, _)| *ending == AttemptEnding::Failure) {
        return (Health::Bad, "failed".into());
    }
    let waiting = endings.values().filter(|(ending, _)| *ending == AttemptEnding::Retry);
    if let Some(next) = waiting.map(|(_, next_at)| *next_at).min() {
        let left = next.map_or(0, |at| at.duration_since(now).as_secs()).max(0);
        return (Health::Waiting, format!("retry in {left} s"));
    }
    if situation.deleting {
        return (Health::Waiting, "deleting".into());
    }
    let children = situation.children.len();
    let is_ready = |child: &&kopf_engine::journal::ChildState| {
        child.waiting.is_none() && child.refused.is_none()
    };
    let ready = situation.children.iter().filter(is_ready).count();
    if ready < children {
        return (Health::Waiting, format!("children {ready}/{children}"));
    }
    (Health::Good, "ok".into())
}

fn age(seconds: i64) -> String {
    match seconds {
        ..60 => format!("{} s", seconds.max(0)),
        60..3600 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Truncates a text to a width, with an ellipsis.
pub(super) fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut cut = String::new();
    let mut taken = 0;
    for character in text.chars() {
        let wide = character.width().unwrap_or(0);
        if taken + wide + 1 > width {
            break;
        }
        cut.push(character);
        taken += wide;
    }
    if width > 0 {
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests;
