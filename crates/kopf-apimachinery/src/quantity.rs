//! Quantities: `500m`, `1Gi`, `1e3`.
//!
//! Responsible for parsing, comparing and the canonical text that the real server returns. Amounts
//! are stored in billionths, the smallest unit of quantities; smaller fractions are rounded up.

const NANO: i128 = 1_000_000_000;

/// An amount and its family of suffixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantity {
    nanos: i128,
    family: Family,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Decimal,
    Binary,
    Exponent,
}

const DECIMAL: [(&str, u32); 10] = [
    ("n", 0),
    ("u", 3),
    ("m", 6),
    ("", 9),
    ("k", 12),
    ("M", 15),
    ("G", 18),
    ("T", 21),
    ("P", 24),
    ("E", 27),
];

const BINARY: [(&str, u32); 6] =
    [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

impl Quantity {
    /// Parses a quantity; `None` if it is malformed or too large.
    pub fn parse(text: &str) -> Option<Self> {
        let (sign, unsigned) = match text.as_bytes().first()? {
            b'-' => (-1, &text[1..]),
            b'+' => (1, &text[1..]),
            _ => (1, text),
        };
        let end = unsigned
            .find(|character: char| !character.is_ascii_digit() && character != '.')
            .unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
        let fraction_length = u32::try_from(fraction.len()).ok()?;
        let (family, multiplier, divisor) = scale(suffix, fraction_length)?;
        let scaled = digits.checked_mul(multiplier)?;
        let nanos = scaled / divisor + i128::from(scaled % divisor != 0);
        Some(Self { nanos: sign * nanos, family })
    }

    /// The sum, in the format of this quantity, or of the other if this one is zero.
    pub fn plus(self, other: Self) -> Self {
        let family = if self.nanos == 0 { other.family } else { self.family };
        Self { nanos: self.nanos.saturating_add(other.nanos), family }
    }

    /// Rounds up to thousandths, the smallest unit in stored objects.
    #[must_use]
    pub fn in_thousandths(self) -> Self {
        const THOUSANDTH: i128 = NANO / 1000;
        let rest = self.nanos.rem_euclid(THOUSANDTH);
        let more = if rest == 0 { 0 } else { THOUSANDTH - rest };
        Self { nanos: self.nanos + more, ..self }
    }

    /// The negated quantity.
    #[must_use]
    pub fn negated(self) -> Self {
        Self { nanos: -self.nanos, ..self }
    }

    /// A quantity of whole units.
    pub fn count(number: usize) -> Self {
        Self { nanos: number as i128 * NANO, family: Family::Decimal }
    }

    /// The amount in billionths.
    pub fn nanos(self) -> i128 {
        self.nanos
    }

    /// The canonical text.
    pub fn canonical(self) -> String {
        if self.nanos == 0 {
            return "0".into();
        }
        let is_small = self.nanos.abs() < 1024 * NANO;
        match self.family {
            Family::Binary if !is_small => self.binary_text(),
            Family::Exponent => self.exponent_text(),
            _ => self.decimal_text(),
        }
    }

    fn binary_text(self) -> String {
        // Binary amounts are whole; a remainder is rounded away from zero.
        let rest = i128::from(self.nanos % NANO != 0) * self.nanos.signum();
        let amount = self.nanos / NANO + rest;
        let (suffix, shift) = BINARY
            .iter()
            .rev()
            .find(|(_, shift)| amount % (1 << shift) == 0)
            .copied()
            .unwrap_or(("", 0));
        format!("{}{suffix}", amount >> shift)
    }

    fn decimal_text(self) -> String {
        let (suffix, power) = self.decimal_power();
        format!("{}{suffix}", self.nanos / 10_i128.pow(power))
    }

    fn exponent_text(self) -> String {
        let (_, power) = self.decimal_power();
        let number = self.nanos / 10_i128.pow(power);
        let exponent = i64::from(power) - 9;
        if exponent == 0 { number.to_string() } else { format!("{number}e{exponent}") }
    }

    fn decimal_power(self) -> (&'static str, u32) {
        let fits = |power: u32| self.nanos % 10_i128.pow(power) == 0;
        DECIMAL.iter().rev().find(|(_, power)| fits(*power)).copied().unwrap_or(("n", 0))
    }
}

/// The suffix family, and the factor and divisor that convert the digits to billionths.
fn scale(suffix: &str, fraction_length: u32) -> Option<(Family, i128, i128)> {
    let fraction = 10_i128.checked_pow(fraction_length)?;
    if let Some((_, power)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some((Family::Decimal, 10_i128.pow(*power), fraction));
    }
    if let Some((_, shift)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return Some((Family::Binary, NANO.checked_mul(1 << shift)?, fraction));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    let power = exponent.checked_add(9)?;
    let size = 10_i128.checked_pow(power.unsigned_abs())?;
    if power >= 0 {
        Some((Family::Exponent, size, fraction))
    } else {
        Some((Family::Exponent, 1, fraction.checked_mul(size)?))
    }
}

#[cfg(test)]
mod tests;
