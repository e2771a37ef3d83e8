//! The table of the book, generated from samples.

use std::fmt::Write as _;

use anyhow::{Context, Result};

use super::charts;
use crate::engine::sheet::{Row, Sheet, short};
use crate::engine::subject::Subject;
use crate::steps::root;

/// The page of the book; the content between the marks is replaced.
const PAGE: &str = "docs/src/reference/peers.md";
const BEGIN: &str = "<!-- begin: cargo xtask bench peers --book -->\n";
const END: &str = "<!-- end -->\n";

/// The folder of the charts, relative to the repository and to the page.
const PICTURES: &str = "docs/src/img";

/// The table as Markdown; each cell is the median with the smallest and largest value, and the
/// ratio to ours.
pub(super) fn table(sheet: &Sheet) -> String {
    let subjects: Vec<Subject> =
        Subject::PEERS.into_iter().filter(|it| has_any(sheet, *it)).collect();
    let mut text = String::from("| |");
    for subject in &subjects {
        let _infallible = write!(text, " {} |", subject.name());
    }
    let _infallible = write!(text, "\n|---|{}\n", "---:|".repeat(subjects.len()));
    for row in sheet.rows().filter(|row| is_about_operators(row)) {
        let _infallible = write!(text, "| {} |", row.name());
        let ours = sheet.median(row, Subject::Ours);
        for subject in &subjects {
            let _infallible = write!(text, " {}", sheet.cell(row, *subject));
            if let (Some(ours), Some(other)) = (ours, sheet.median(row, *subject))
                && *subject != Subject::Ours
                && ours > 0.0
            {
                let _infallible = write!(text, " **×{}**", short(other / ours));
            }
            text.push_str(" |");
        }
        text.push('\n');
    }
    text
}

fn has_any(sheet: &Sheet, subject: Subject) -> bool {
    sheet.rows().any(|row| sheet.median(row, subject).is_some())
}

/// Whether a row is about operators.
fn is_about_operators(row: &Row) -> bool {
    !matches!(row, Row::Making(_) | Row::PerObject(_) | Row::PerFurther(_) | Row::WriteTime(_))
}

/// Replaces the table, the date and the charts of the book.
pub(super) fn write(sheet: &Sheet) -> Result<()> {
    let path = root().join(PAGE);
    let page = std::fs::read_to_string(&path).with_context(|| format!("{PAGE} is missing"))?;
    let (before, rest) = page.split_once(BEGIN).context("the page has no begin mark")?;
    let (_, after) = rest.split_once(END).context("the page has no end mark")?;
    let mut generated = format!("Measured on {}.\n\n{}\n", crate::machine(), table(sheet));
    for chart in charts::all(sheet) {
        let file = format!("peers-{}.svg", chart.name);
        std::fs::write(root().join(PICTURES).join(&file), &chart.svg)?;
        let _infallible = writeln!(generated, "![{}](../img/{file})\n", chart.title);
    }
    std::fs::write(path, [before, BEGIN, &generated, END, after].concat())?;
    Ok(())
}
