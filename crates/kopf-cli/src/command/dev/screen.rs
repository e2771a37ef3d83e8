//! The terminal of `kopf dev`: scrolling lines, and below them an area that is kept up to date.
//!
//! Without a terminal there are only the lines. No alternate screen and no raw mode: printed lines
//! stay in the scrollback, and Ctrl-C stays a signal. A few escape sequences suffice, with
//! `anstyle` for colours.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use kopf_engine::journal::Chronicle;
use unicode_width::UnicodeWidthStr as _;

use super::table::{self, Room};

/// The assumed size of a window of unknown size.
const USUAL_SIZE: (usize, usize) = (80, 24);

/// Whether to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    Always,
    Never,
}

/// The terminal, or a plain output.
pub(super) struct Screen {
    is_live: bool,
    paint: Paint,
    title: String,
    status: String,
    area: Area,
    objects: BTreeMap<(String, String), Chronicle>,
}

/// The redrawn lines at the bottom.
#[derive(Default)]
struct Area {
    /// The widths of the lines on the screen.
    widths: Vec<usize>,
}

impl Screen {
    /// The standard output: live on a terminal, lines otherwise.
    pub(super) fn new(is_plain: bool, title: &str) -> Self {
        let is_terminal = std::io::stdout().is_terminal();
        let has_no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|name| name == "dumb");
        let is_painted = is_terminal && !has_no_color && !is_dumb;
        Self {
            is_live: is_terminal && !is_plain && !is_dumb,
            paint: if is_painted { Paint::Always } else { Paint::Never },
            title: title.to_owned(),
            status: String::new(),
            area: Area::default(),
            objects: BTreeMap::new(),
        }
    }

    pub(super) fn paint(&self) -> Paint {
        self.paint
    }

    /// Whether the area is drawn; otherwise progress must be printed as lines.
    pub(super) fn is_live(&self) -> bool {
        self.is_live
    }

    /// Prints a line above the area.
    pub(super) fn say(&mut self, line: &str) {
        self.draw(&format!("{line}\n"));
    }

    /// Replaces the status.
    pub(super) fn set_status(&mut self, status: impl Into<String>) {
        self.status = status.into();
    }

    /// Adds news about objects.
    pub(super) fn learn(&mut self, objects: Vec<Chronicle>) {
        for object in objects {
            let place = format!("{}/{}", object.namespace.as_deref().unwrap_or(""), object.name);
            self.objects.insert((object.resource.clone(), place), object);
        }
    }

    /// Removes all objects: a new operator will report them again.
    pub(super) fn forget(&mut self) {
        self.objects.clear();
    }

    /// Draws the area again.
    pub(super) fn refresh(&mut self) {
        if self.is_live {
            self.draw("");
        }
    }

    /// Removes the area; printed lines stay.
    pub(super) fn close(&mut self) {
        if self.is_live {
            let (width, _) = size();
            self.is_live = false;
            emit(&self.area.frame("", &[], width));
        }
    }

    fn draw(&mut self, above: &str) {
        if !self.is_live {
            emit(above);
            return;
        }
        let (width, height) = size();
        let lines = self.lines(width, height);
        emit(&self.area.frame(above, &lines, width));
    }

    fn lines(&self, width: usize, height: usize) -> Vec<String> {
        // The last column stays free, since some terminals wrap there.
        let width = width.saturating_sub(1);
        let room = Room { width, rows_max: (height / 2).min(14) };
        let table = table::render(self.objects.values(), room, Timestamp::now(), self.paint);
        let head = table::fit(&format!("── {} · {} ", self.title, self.status), width);
        let rule = "─".repeat(width.saturating_sub(head.width()));
        let mut lines = vec![self.paint.bold(&format!("{head}{rule}"))];
        lines.extend(table);
        lines
    }
}

impl Area {
    /// The output that removes the old area, prints the text, and draws the new area below it.
    fn frame(&mut self, above: &str, lines: &[String], width: usize) -> String {
        let width = width.max(1);
        // If the window has become narrower, it has wrapped the old lines.
        let rows: usize = self.widths.iter().map(|wide| wide.div_ceil(width).max(1)).sum();
        let mut text = String::new();
        if rows > 0 {
            text.push_str(&format!("\r\u{1b}[{rows}A\u{1b}[J"));
        }
        text.push_str(above);
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        self.widths = lines.iter().map(|line| visible_width(line)).collect();
        text
    }
}

/// The width of a line on the screen, without colours.
fn visible_width(line: &str) -> usize {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().map_or(0, |part| part.width());
    let rest = parts.map(|part| part.split_once('m').map_or(0, |(_, text)| text.width()));
    first + rest.sum::<usize>()
}

fn size() -> (usize, usize) {
    let size = terminal_size::terminal_size();
    size.map_or(USUAL_SIZE, |(width, height)| (usize::from(width.0), usize::from(height.0)))
}

fn emit(text: &str) {
    let mut output = std::io::stdout().lock();
    // A closed terminal is noticed by its signal; a closed pipe has no reader.
    let _ = output.write_all(text.as_bytes()).and_then(|()| output.flush());
}

impl Paint {
    pub(super) fn red(self, text: &str) -> String {
        self.with(AnsiColor::Red.on_default(), text)
    }

    pub(super) fn green(self, text: &str) -> String {
        self.with(AnsiColor::Green.on_default(), text)
    }

    pub(super) fn yellow(self, text: &str) -> String {
        self.with(AnsiColor::Yellow.on_default(), text)
    }

    pub(super) fn cyan(self, text: &str) -> String {
        self.with(AnsiColor::Cyan.on_default(), text)
    }

    pub(super) fn bold(self, text: &str) -> String {
        self.with(Style::new().bold(), text)
    }

    pub(super) fn dim(self, text: &str) -> String {
        self.with(Style::new().dimmed(), text)
    }

    fn with(self, style: Style, text: &str) -> String {
        match self {
            Self::Always if !text.is_empty() => format!("{style}{text}{style:#}"),
            _ => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
