//! Bar charts as SVG: one row of the table each, on a logarithmic scale.

use std::fmt::Write as _;

use crate::engine::sheet::{Row, Sheet, short};
use crate::engine::subject::Subject;

const WIDTH: f64 = 720.0;
const NAMES: f64 = 220.0;
const NUMBERS: f64 = 80.0;
const BAR: f64 = 18.0;
const STEP: f64 = 26.0;
const HEAD: f64 = 34.0;

/// One picture.
pub(super) struct Chart {
    pub(super) name: &'static str,
    pub(super) title: String,
    pub(super) svg: String,
}

/// The pictures of the rows that were measured.
pub(super) fn all(sheet: &Sheet) -> Vec<Chart> {
    let rows = [
        ("burst", Row::Burst("create".into(), 1000)),
        ("cpu", Row::BurstCpu("create".into(), 1000)),
        ("noop", Row::Noop),
        ("reaction", Row::LatencyMedian("create".into())),
        ("tail", Row::LatencyTail("create".into())),
        ("start", Row::StartUp),
        ("memory", Row::Idle),
    ];
    rows.into_iter().filter_map(|(name, row)| chart(sheet, name, &row)).collect()
}

fn chart(sheet: &Sheet, name: &'static str, row: &Row) -> Option<Chart> {
    let bars: Vec<(Subject, f64)> = Subject::PEERS
        .into_iter()
        .filter_map(|subject| Some((subject, sheet.median(row, subject)?)))
        .collect();
    if bars.len() < 2 {
        return None;
    }
    let title = row.name();
    Some(Chart { name, svg: draw(&title, &bars), title })
}

fn draw(title: &str, bars: &[(Subject, f64)]) -> String {
    let least = bars.iter().map(|bar| bar.1).fold(f64::INFINITY, f64::min);
    let most = bars.iter().map(|bar| bar.1).fold(f64::NEG_INFINITY, f64::max);
    // Keeps the shortest bar visible.
    let base = (least / 2.0).ln();
    let span = most.ln() - base;
    let room = WIDTH - NAMES - NUMBERS;
    #[expect(clippy::cast_precision_loss, reason = "there are few bars")]
    let height = STEP.mul_add(bars.len() as f64, HEAD) + 8.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\" role=\"img\" aria-label=\"{title}\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"8\" y=\"20\" font-weight=\"bold\">{title} (logarithmic; shorter is better)</text>\n"
    );
    let mut y = HEAD;
    for (subject, value) in bars {
        let length = (value.ln() - base) / span * room;
        let color = if *subject == Subject::Ours { "#2563eb" } else { "#9ca3af" };
        let (middle, end) = (BAR.mul_add(0.5, y) + 4.5, NAMES + length + 6.0);
        let _infallible = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{middle:.1}\" text-anchor=\"end\">{}</text>\
             <rect x=\"{NAMES}\" y=\"{y:.1}\" width=\"{length:.1}\" height=\"{BAR}\" fill=\"{color}\"/>\
             <text x=\"{end:.1}\" y=\"{middle:.1}\">{}</text>",
            NAMES - 8.0,
            subject.name(),
            short(*value),
        );
        y += STEP;
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_bars_are_for_larger_values() {
        let svg = draw("burst", &[(Subject::Ours, 10.0), (Subject::Go, 1000.0)]);
        let width = |line: &str| -> f64 {
            let rest = line.split("<rect").nth(1).unwrap_or_default();
            let rest = rest.split("width=\"").nth(1).unwrap_or_default();
            rest.split('"').next().unwrap_or_default().parse().unwrap_or_default()
        };
        let widths: Vec<f64> = svg.lines().filter(|it| it.contains("anchor")).map(width).collect();
        assert!(matches!(widths.as_slice(), [ours, go] if *ours > 10.0 && ours < go), "{svg}");
    }
}
