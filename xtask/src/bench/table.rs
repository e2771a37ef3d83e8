//! Rows of measurements, printed side by side with what we want them to be.

/// One measured row.
pub(crate) struct Row {
    /// What was measured.
    pub(crate) name: String,
    /// The value.
    pub(crate) value: f64,
    /// The unit.
    pub(crate) unit: &'static str,
    /// What it should be at least (positive) or at most (negative); zero means no target.
    pub(crate) target: f64,
}

impl Row {
    pub(crate) fn new(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { name: name.into(), value, unit, target: 0.0 }
    }

    pub(crate) fn at_least(mut self, target: f64) -> Self {
        self.target = target;
        self
    }

    pub(crate) fn at_most(mut self, target: f64) -> Self {
        self.target = -target;
        self
    }

    fn is_met(&self) -> bool {
        if self.target < 0.0 { self.value <= -self.target } else { self.value >= self.target }
    }

    fn render(&self) -> String {
        let (name, value, unit) = (&self.name, self.value, self.unit);
        let target = match self.target {
            0.0 => String::new(),
            target if target < 0.0 => format!("<= {}", -target),
            target => format!(">= {target}"),
        };
        let verdict = if self.is_met() { "" } else { "  MISSED" };
        format!("{name:<44} {value:>12.1} {unit:<10} {target:>12}{verdict}")
    }
}

/// Prints one row as soon as it is known, and keeps it.
pub(crate) fn report(rows: &mut Vec<Row>, row: Row) {
    println!("{}", row.render());
    rows.push(row);
}

/// Prints how many targets were met.
pub(crate) fn summary(rows: &[Row]) {
    let with_target: Vec<&Row> = rows.iter().filter(|row| row.target != 0.0).collect();
    let met = with_target.iter().filter(|row| row.is_met()).count();
    println!("{met} of {} targets met", with_target.len());
}

#[cfg(test)]
mod tests {
    use super::Row;

    #[test]
    fn targets_work_in_both_directions() {
        assert!(Row::new("a", 5.0, "/s").at_least(5.0).is_met());
        assert!(!Row::new("a", 4.0, "/s").at_least(5.0).is_met());
        assert!(Row::new("a", 4.0, "ms").at_most(5.0).is_met());
        assert!(!Row::new("a", 6.0, "ms").at_most(5.0).is_met());
    }
}
