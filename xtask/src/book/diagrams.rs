//! Diagrams of the book: renders `docs/diagrams/*.txt` as `docs/src/diagrams/*.svg`.
//!
//! A text has a title, boxes on a grid, and arrows between them:
//!
//! ```text
//! title: From an event to a call
//! watch @ 0,0: watch | what the server says
//! queue @ 1,0*: queue
//! watch -> queue: key
//! ```
//! A star highlights a box; a bar starts a new line.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, anyhow};

/// The size of a box, and the space around it.
const BOX: (i32, i32) = (168, 56);
const GAP: (i32, i32) = (96, 48);
/// The space around everything, and for the title.
const MARGIN: i32 = 24;
const TITLE: i32 = 30;

/// Writes all diagrams.
pub(super) fn draw(root: &Path) -> Result<()> {
    for (path, svg) in all(root)? {
        let path = root.join(path);
        path.parent().map(std::fs::create_dir_all).transpose()?;
        std::fs::write(path, svg)?;
    }
    Ok(())
}

/// Reports diagrams that differ from their texts.
pub(super) fn check(root: &Path) -> Result<Vec<String>> {
    let is_stale = |(path, svg): &(String, String)| {
        std::fs::read_to_string(root.join(path)).ok().as_ref() != Some(svg)
    };
    let stale = all(root)?.into_iter().filter(is_stale);
    Ok(stale.map(|(path, _)| format!("{path}: run `cargo xtask book --draw`")).collect())
}

fn all(root: &Path) -> Result<Vec<(String, String)>> {
    let mut diagrams = Vec::new();
    for entry in std::fs::read_dir(root.join("docs/diagrams"))? {
        let path = entry?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).context("a name")?.to_owned();
        let text = std::fs::read_to_string(&path)?;
        let svg = svg(&text).with_context(|| path.display().to_string())?;
        diagrams.push((format!("docs/src/diagrams/{name}.svg"), svg));
    }
    diagrams.sort();
    Ok(diagrams)
}

struct Node<'a> {
    name: &'a str,
    column: i32,
    row: i32,
    stands_out: bool,
    lines: Vec<&'a str>,
}

impl Node<'_> {
    /// The middle of the box.
    fn middle(&self) -> (i32, i32) {
        let x = MARGIN + self.column * (BOX.0 + GAP.0) + BOX.0 / 2;
        (x, MARGIN + TITLE + self.row * (BOX.1 + GAP.1) + BOX.1 / 2)
    }
}

struct Arrow<'a> {
    from: &'a str,
    to: &'a str,
    label: &'a str,
}

/// The SVG of a text.
fn svg(text: &str) -> Result<String> {
    let mut title = "";
    let (mut nodes, mut arrows) = (Vec::new(), Vec::new());
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (head, label) = line.split_once(':').unwrap_or((line, ""));
        let (head, label) = (head.trim(), label.trim());
        if head == "title" {
            title = label;
        } else if let Some((from, to)) = head.split_once("->") {
            arrows.push(Arrow { from: from.trim(), to: to.trim(), label });
        } else {
            nodes.push(node(head, label).ok_or_else(|| anyhow!("`{line}` is not understood"))?);
        }
    }
    let columns = nodes.iter().map(|node| node.column + 1).max().unwrap_or(1);
    let rows = nodes.iter().map(|node| node.row + 1).max().unwrap_or(1);
    let width = 2 * MARGIN + columns * (BOX.0 + GAP.0) - GAP.0;
    let height = 2 * MARGIN + TITLE + rows * (BOX.1 + GAP.1) - GAP.1;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         role=\"img\" aria-label=\"{title}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <defs><marker id=\"end\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"7\" \
         markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L10 5L0 10z\" fill=\"#444\"/></marker></defs>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#fff\"/>\n\
         <text x=\"{MARGIN}\" y=\"{}\" font-weight=\"bold\" fill=\"#222\">{}</text>\n",
        MARGIN + 8,
        escaped(title),
        title = escaped(title),
    );
    for arrow in &arrows {
        let find = |name: &str| {
            let node = nodes.iter().find(|node| node.name == name);
            node.ok_or_else(|| anyhow!("there is no box `{name}`"))
        };
        draw_arrow(&mut out, find(arrow.from)?, find(arrow.to)?, arrow.label);
    }
    nodes.iter().for_each(|node| draw_node(&mut out, node));
    out.push_str("</svg>\n");
    Ok(out)
}

/// Parses `name @ column,row`, with a trailing star if the box is highlighted.
fn node<'a>(head: &'a str, label: &'a str) -> Option<Node<'a>> {
    let (name, place) = head.split_once('@')?;
    let place = place.trim();
    let stands_out = place.ends_with('*');
    let (column, row) = place.trim_end_matches('*').split_once(',')?;
    let lines = label.split('|').map(str::trim).collect();
    let (column, row) = (column.trim().parse().ok()?, row.trim().parse().ok()?);
    Some(Node { name: name.trim(), column, row, stands_out, lines })
}

fn draw_node(out: &mut String, node: &Node<'_>) {
    let (x, y) = node.middle();
    let (fill, stroke) =
        if node.stands_out { ("#fdf0d5", "#b7791f") } else { ("#eaf1fb", "#4a6fa5") };
    let _infallible = writeln!(
        out,
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"6\" fill=\"{fill}\" stroke=\"{stroke}\"/>",
        x - BOX.0 / 2,
        y - BOX.1 / 2,
        BOX.0,
        BOX.1
    );
    let count = i32::try_from(node.lines.len()).unwrap_or(1);
    for (index, line) in (0..).zip(&node.lines) {
        let y = y + 5 - (count - 1) * 8 + index * 16;
        let weight = if index == 0 { " font-weight=\"bold\"" } else { "" };
        let _infallible = writeln!(
            out,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" fill=\"#222\"{weight}>{}</text>",
            escaped(line)
        );
    }
}

/// Draws a straight arrow between neighbours, otherwise one around a corner.
fn draw_arrow(out: &mut String, from: &Node<'_>, to: &Node<'_>, label: &str) {
    let ((x1, y1), (x2, y2)) = (from.middle(), to.middle());
    let (half_width, half_height) = (BOX.0 / 2, BOX.1 / 2);
    let (points, at) = if from.row == to.row {
        let side = (x2 - x1).signum() * half_width;
        (vec![(x1 + side, y1), (x2 - side, y2)], (i32::midpoint(x1, x2), y1 - 6))
    } else if from.column == to.column {
        let side = (y2 - y1).signum() * half_height;
        (vec![(x1, y1 + side), (x2, y2 - side)], (x1 + 4, i32::midpoint(y1, y2) + 4))
    } else {
        let (sideways, upright) =
            ((x2 - x1).signum() * half_width, (y2 - y1).signum() * half_height);
        (
            vec![(x1 + sideways, y1), (x2, y1), (x2, y2 - upright)],
            (x2 + 4, i32::midpoint(y1, y2) + 4),
        )
    };
    let points: Vec<String> = points.iter().map(|(x, y)| format!("{x},{y}")).collect();
    let _infallible = writeln!(
        out,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"#444\" marker-end=\"url(#end)\"/>",
        points.join(" ")
    );
    if !label.is_empty() {
        let anchor = if from.row == to.row { "middle" } else { "start" };
        let _infallible = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\" fill=\"#444\" font-size=\"11\">{}</text>",
            at.0,
            at.1,
            escaped(label)
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests;
