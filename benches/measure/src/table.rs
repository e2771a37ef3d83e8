//! A table of measurements: several samples per row, next to their targets.

/// The target of a row.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    /// The median is not below this.
    AtLeast(f64),
    /// The median is not above this.
    AtMost(f64),
    /// Measured for information.
    Free,
}

/// One row: the samples of all rounds.
struct Row {
    name: String,
    unit: &'static str,
    target: Target,
    samples: Vec<f64>,
}

impl Row {
    fn median(&self) -> f64 {
        let mut sorted = self.samples.clone();
        sorted.sort_by(f64::total_cmp);
        match sorted.len() {
            0 => 0.0,
            length if length % 2 == 1 => sorted[length / 2],
            length => f64::midpoint(sorted[length / 2 - 1], sorted[length / 2]),
        }
    }

    /// `lowest-highest`, empty for a single sample.
    fn spread(&self) -> String {
        if self.samples.len() < 2 {
            return String::new();
        }
        let lowest = self.samples.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = self.samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        format!("{}-{}", number(lowest), number(highest))
    }

    /// Whether the target is met; `None` without a target.
    fn is_met(&self) -> Option<bool> {
        match self.target {
            Target::AtLeast(bar) => Some(self.median() >= bar),
            Target::AtMost(bar) => Some(self.median() <= bar),
            Target::Free => None,
        }
    }

    fn cells(&self) -> [String; 6] {
        let target = match self.target {
            Target::AtLeast(bar) => format!(">= {}", number(bar)),
            Target::AtMost(bar) => format!("<= {}", number(bar)),
            Target::Free => String::new(),
        };
        let verdict = match self.is_met() {
            Some(true) => "ok",
            Some(false) => "MISSED",
            None => "",
        };
        [
            self.name.clone(),
            number(self.median()),
            self.unit.to_owned(),
            self.spread(),
            target,
            verdict.to_owned(),
        ]
    }
}

/// All rows in the order of their first sample.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
}

impl Table {
    /// Adds a sample to the row with this name, which is created if necessary, and prints it, since
    /// a run takes minutes.
    pub(crate) fn add(&mut self, name: &str, value: f64, unit: &'static str, target: Target) {
        println!("  {name}: {} {unit}", number(value));
        match self.rows.iter_mut().find(|row| row.name == name) {
            Some(row) => row.samples.push(value),
            None => {
                self.rows.push(Row { name: name.to_owned(), unit, target, samples: vec![value] })
            }
        }
    }

    /// The table as Markdown that also reads well in a terminal.
    pub(crate) fn render(&self) -> String {
        let head = ["", "median", "unit", "spread", "target", ""].map(str::to_owned);
        let rows: Vec<[String; 6]> =
            std::iter::once(head).chain(self.rows.iter().map(Row::cells)).collect();
        let mut widths = [0; 6];
        for cells in &rows {
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut text = String::new();
        for (index, [name, median, unit, spread, target, verdict]) in rows.iter().enumerate() {
            let [a, b, c, d, e, f] = widths;
            text.push_str(&format!(
                "| {name:<a$} | {median:>b$} | {unit:<c$} | {spread:>d$} | {target:>e$} \
                 | {verdict:<f$} |\n"
            ));
            if index == 0 {
                text.push_str("|---|--:|---|--:|--:|---|\n");
            }
        }
        text
    }

    /// The medians of the same rows of another subject, and the factor by which this one is better.
    pub(crate) fn render_beside(&self, others: &Self, heading: &str) -> String {
        let mut text =
            format!("| | {heading} | this | unit | better by |\n|---|--:|--:|---|--:|\n");
        for row in &self.rows {
            let Some(other) = others.rows.iter().find(|other| other.name == row.name) else {
                continue;
            };
            let factor = match row.unit {
                "/s" | "MB/s" => row.median() / other.median(),
                _ => other.median() / row.median(),
            };
            let cell = |row: &Row| match row.spread() {
                spread if spread.is_empty() => number(row.median()),
                spread => format!("{} ({spread})", number(row.median())),
            };
            text.push_str(&format!(
                "| {} | {} | {} | {} | {factor:.2} |\n",
                row.name,
                cell(other),
                cell(row),
                row.unit,
            ));
        }
        text
    }

    /// The number of targets that are met, and of all targets.
    pub(crate) fn met(&self) -> (usize, usize) {
        let verdicts: Vec<bool> = self.rows.iter().filter_map(Row::is_met).collect();
        (verdicts.iter().filter(|met| **met).count(), verdicts.len())
    }

    /// One line: how many targets are met, and which are not.
    pub(crate) fn summary(&self) -> String {
        let (met, all) = self.met();
        let missed: Vec<&str> = self
            .rows
            .iter()
            .filter(|row| row.is_met() == Some(false))
            .map(|row| row.name.as_str())
            .collect();
        match missed.is_empty() {
            true => format!("{met} of {all} targets met"),
            false => format!("{met} of {all} targets met; missed: {}", missed.join("; ")),
        }
    }
}

/// Three significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests;
