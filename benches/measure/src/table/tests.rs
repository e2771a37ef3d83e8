//! Tests that tables use the median and report missed targets.

use super::{Table, Target};

fn table(samples: &[f64], target: Target) -> Table {
    let mut table = Table::default();
    for sample in samples {
        table.add("a", *sample, "/s", target);
    }
    table
}

#[test]
fn targets_work_in_both_directions() {
    assert_eq!(table(&[5.0], Target::AtLeast(5.0)).met(), (1, 1));
    assert_eq!(table(&[4.0], Target::AtLeast(5.0)).met(), (0, 1));
    assert_eq!(table(&[4.0], Target::AtMost(5.0)).met(), (1, 1));
    assert_eq!(table(&[6.0], Target::AtMost(5.0)).met(), (0, 1));
    assert_eq!(table(&[6.0], Target::Free).met(), (0, 0));
}

#[test]
fn the_median_decides() {
    assert_eq!(table(&[1.0, 9.0, 6.0], Target::AtLeast(5.0)).met(), (1, 1));
    assert_eq!(table(&[1.0, 9.0, 4.0], Target::AtLeast(5.0)).met(), (0, 1));
}

#[test]
fn the_summary_names_what_was_missed() {
    let mut table = table(&[1.0], Target::AtLeast(5.0));
    table.add("b", 1.0, "ms", Target::AtMost(2.0));
    assert_eq!(table.summary(), "1 of 2 targets met; missed: a");
}

#[test]
fn two_builds_are_compared_in_the_direction_of_the_unit() {
    let mut this = table(&[20.0], Target::Free);
    let mut before = table(&[10.0], Target::Free);
    this.add("b", 2.0, "ms", Target::Free);
    before.add("b", 1.0, "ms", Target::Free);
    let text = this.render_beside(&before, "before");
    assert!(text.contains("| a | 10.0 | 20.0 | /s | 2.00 |"), "{text}");
    assert!(text.contains("| b | 1.00 | 2.00 | ms | 0.50 |"), "{text}");
}
