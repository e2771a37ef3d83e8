//! The layout of a comparison: what is on one line, how lines are indented and marked.
//!
//! Pure. Knows texts only; `diff` decides what they say. A block is on one line if nothing in it is
//! marked; a marked block also has to be short.

/// The length above which a marked block and a list of plain texts are broken into lines.
const LINE_LENGTH_MAX: usize = 80;

/// A value: on one line, or with items in brackets.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Text {
    Line(String),
    Block { open: String, items: Vec<Item> },
}

impl Text {
    pub(super) fn line(text: impl Into<String>) -> Self {
        Self::Line(text.into())
    }

    /// The same value with something before it, such as `&` or a type.
    pub(super) fn after(self, prefix: &str) -> Self {
        match self {
            Self::Line(text) => Self::Line(format!("{prefix}{text}")),
            Self::Block { open, items } => Self::Block { open: format!("{prefix}{open}"), items },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mark {
    None,
    Removed,
    Inserted,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Item {
    pub(super) mark: Mark,
    pub(super) key: String,
    pub(super) text: Text,
    /// What `...` stands for.
    pub(super) note: Option<String>,
    pub(super) is_rest: bool,
}

impl Item {
    pub(super) fn new(mark: Mark, key: &str, text: Text) -> Self {
        Self { mark, key: key.to_owned(), text, note: None, is_rest: false }
    }

    /// `...` for items that are left out.
    pub(super) fn rest(note: Option<String>) -> Self {
        let item = Self::new(Mark::None, "", Text::line("..."));
        Self { note, is_rest: true, ..item }
    }

    fn is_plain(&self) -> bool {
        let is_line = matches!(self.text, Text::Line(_));
        self.mark == Mark::None && self.key.is_empty() && self.note.is_none() && is_line
    }
}

/// The whole text, with a line feed at its end.
pub(super) fn render(text: &Text) -> String {
    let mut result = String::from("  ");
    expand(&compact(text, Mark::None), Mark::None, 0, &mut result);
    result + "\n"
}

/// Puts blocks on one line where that is possible.
fn compact(text: &Text, around: Mark) -> Text {
    let Text::Block { open, items } = text else { return text.clone() };
    let mut joined = String::new();
    let mut is_line = true;
    let mut compacted = Vec::with_capacity(items.len());
    for item in items {
        let mark = if item.mark == Mark::None { around } else { item.mark };
        let text = compact(&item.text, mark);
        if !joined.is_empty() {
            joined.push_str(", ");
        }
        if !item.key.is_empty() {
            joined.push_str(&item.key);
            joined.push_str(": ");
        }
        match &text {
            Text::Line(line) => joined.push_str(line),
            Text::Block { .. } => is_line = false,
        }
        is_line &= item.mark == Mark::None && item.note.is_none();
        compacted.push(Item { text, ..item.clone() });
    }
    if around != Mark::None && joined.len() > LINE_LENGTH_MAX {
        is_line = false;
    }
    if is_line {
        Text::Line(format!("{open}{joined}}}"))
    } else {
        Text::Block { open: open.clone(), items: compacted }
    }
}

fn expand(text: &Text, around: Mark, depth: usize, result: &mut String) {
    match text {
        Text::Line(line) => result.push_str(line),
        Text::Block { open, items } => {
            result.push_str(open);
            if items.iter().all(Item::is_plain) {
                plain_lines(items, around, depth + 1, result);
            } else {
                lines(items, around, depth + 1, result);
            }
            new_line(around, depth, result);
            result.push('}');
        }
    }
}

/// As many texts on each line as fit.
fn plain_lines(items: &[Item], mark: Mark, depth: usize, result: &mut String) {
    let mut length = 0;
    for item in items {
        let Text::Line(text) = &item.text else { continue };
        if length == 0 || length + text.len() + ", ".len() > LINE_LENGTH_MAX {
            new_line(mark, depth, result);
            length = 0;
        } else {
            result.push(' ');
        }
        result.push_str(text);
        result.push(',');
        length += text.len() + ", ".len();
    }
}

/// One item per line; the values of adjacent short items are aligned.
fn lines(items: &[Item], around: Mark, depth: usize, result: &mut String) {
    for (item, padding) in items.iter().zip(paddings(items)) {
        let mark = if item.mark == Mark::None { around } else { item.mark };
        new_line(mark, depth, result);
        if !item.key.is_empty() {
            result.push_str(&item.key);
            result.push_str(": ");
        }
        result.push_str(&" ".repeat(padding));
        expand(&item.text, mark, depth, result);
        if !item.is_rest {
            result.push(',');
        }
        if let Some(note) = &item.note {
            result.push_str(" // ");
            result.push_str(note);
        }
    }
}

/// How many spaces follow each key.
fn paddings(items: &[Item]) -> Vec<usize> {
    let is_aligned = |item: &Item| !item.key.is_empty() && matches!(item.text, Text::Line(_));
    let length = |item: &Item| item.key.chars().count();
    let runs = items.chunk_by(|left, right| is_aligned(left) && is_aligned(right));
    runs.flat_map(|run| {
        let longest = run.iter().map(length).max().unwrap_or_default();
        run.iter().map(move |item| if is_aligned(item) { longest - length(item) } else { 0 })
    })
    .collect()
}

fn new_line(mark: Mark, depth: usize, result: &mut String) {
    result.push_str(match mark {
        Mark::None => "\n  ",
        Mark::Removed => "\n- ",
        Mark::Inserted => "\n+ ",
    });
    result.push_str(&"\t".repeat(depth));
}
