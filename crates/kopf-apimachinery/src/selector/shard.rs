//! Selects a share of the objects of a list or watch: `shardSelector` of Kubernetes 1.36.
//!
//! Pure. KEP-5866: `shardRange(object.metadata.uid, '0x...', '0x...')`, optionally several joined
//! by `
//! `, over the 64-bit FNV-1a hash of the field. Error messages are upstream's.

use super::shard_syntax::{Expression, parse};
use crate::identity::Identity;

/// The end of the hash space: 2^64, which no 64-bit number reaches.
const SPACE_END: &str = "10000000000000000";

/// The selected ranges; an empty list selects everything.
#[derive(Debug, Clone, Default)]
pub struct ShardSelector {
    field: Field,
    ranges: Vec<Span>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Field {
    #[default]
    Uid,
    Namespace,
}

/// From the first hash up to, but not including, the end.
#[derive(Debug, Clone)]
struct Span {
    start: u128,
    end: u128,
}

impl Field {
    fn path(self) -> &'static str {
        match self {
            Self::Uid => "object.metadata.uid",
            Self::Namespace => "object.metadata.namespace",
        }
    }
}

impl ShardSelector {
    /// Parses the text of a request; an empty one selects everything.
    ///
    /// # Errors
    /// Fails with upstream's text if it is not a selector.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let problem = |it: String| format!("invalid shard selector: {it}");
        if text.trim().is_empty() {
            return Err(problem(
                "empty shard selector is not allowed; omit the parameter for unfiltered lists"
                    .to_owned(),
            ));
        }
        let mut found = Vec::new();
        parse(text.trim())
            .map_err(|error| format!("CEL parse error: {error}"))
            .and_then(|expression| walk(&expression, &mut found))
            .map_err(problem)?;
        let field = found.first().map_or(Field::Uid, |(field, _)| *field);
        if let Some((other, _)) = found.iter().find(|(it, _)| *it != field) {
            let (one, other) = (field.path(), other.path());
            return Err(problem(format!(
                "all shard ranges must use the same field, got {one:?} and {other:?}"
            )));
        }
        Ok(Self { field, ranges: found.into_iter().map(|(_, span)| span).collect() })
    }

    /// Whether everything is selected.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether the object with this encoding is selected.
    pub fn matches(&self, encoded: &[u8]) -> bool {
        if self.is_empty() {
            return true;
        }
        let Identity { uid, namespace } = Identity::read(encoded);
        let text = match self.field {
            Field::Uid => uid,
            Field::Namespace => namespace,
        };
        let hash = u128::from(fnv1a(text.as_bytes()));
        self.ranges.iter().any(|it| it.start <= hash && hash < it.end)
    }

    /// The selector as repeated in list responses.
    pub fn canonical(&self) -> Option<String> {
        let path = self.field.path();
        let term = |it: &Span| {
            let (start, end) = (it.start, it.end);
            format!("shardRange({path}, '{start:#018x}', '{end:#018x}')")
        };
        let terms: Vec<String> = self.ranges.iter().map(term).collect();
        (!terms.is_empty()).then(|| terms.join(" || "))
    }
}

/// FNV-1a with 64 bits.
fn fnv1a(bytes: &[u8]) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

fn walk(expression: &Expression, found: &mut Vec<(Field, Span)>) -> Result<(), String> {
    match expression {
        Expression::Call(name, arguments) if name == "_||_" => {
            arguments.iter().try_for_each(|argument| walk(argument, found))
        }
        Expression::Call(name, arguments) if name == "shardRange" => {
            found.push(range(arguments)?);
            Ok(())
        }
        Expression::Call(name, _) => {
            Err(format!("unsupported function {name:?}; only shardRange() and || are allowed"))
        }
        other => Err(format!(
            "unexpected expression kind {}; expected shardRange() call or || operator",
            other.kind()
        )),
    }
}

fn range(arguments: &[Expression]) -> Result<(Field, Span), String> {
    let [path, start, end] = arguments else {
        let count = arguments.len();
        return Err(format!("shardRange() requires exactly 3 arguments, got {count}"));
    };
    let path = field_path(path).map_err(|it| format!("shardRange() first argument: {it}"))?;
    let field = [Field::Uid, Field::Namespace]
        .into_iter()
        .find(|it| it.path() == path)
        .ok_or_else(|| {
            format!(
                "unsupported field path {path:?}; supported: object.metadata.uid, \
                     object.metadata.namespace"
            )
        })?;
    let (start, end) = (hex(start, "hexStart")?, hex(end, "hexEnd")?);
    if start >= end {
        return Err(format!("shard range start {start:#018x} must be less than end {end:#018x}"));
    }
    Ok((field, Span { start, end }))
}

fn field_path(expression: &Expression) -> Result<String, String> {
    match expression {
        Expression::Ident(name) => Ok(name.clone()),
        Expression::Select(operand, name) => Ok(format!("{}.{name}", field_path(operand)?)),
        other => Err(format!(
            "expected field path (e.g. object.metadata.uid), got expression kind {}",
            other.kind()
        )),
    }
}

fn hex(expression: &Expression, name: &str) -> Result<u128, String> {
    let text = match expression {
        Expression::Text(text) => text,
        Expression::Number(kind) => {
            return Err(format!("{name} must be a string literal, got {kind}"));
        }
        other => {
            return Err(format!(
                "{name} must be a string literal (e.g. '0xff'), got expression kind {}",
                other.kind()
            ));
        }
    };
    let Some(digits) = text.strip_prefix("0x") else {
        return Err(format!("{name} must have '0x' prefix, got {text:?}"));
    };
    let count = digits.len();
    let is_digit = |it: &char| matches!(it, '0'..='9' | 'a'..='f');
    if digits.is_empty() {
        return Err(format!("{name}: hex value is required after '0x'"));
    }
    if count > 17 {
        return Err(format!("{name}: hex value too long ({count} chars, max 17): {digits:?}"));
    }
    if let Some(other) = digits.chars().find(|it| !is_digit(it)) {
        return Err(format!("{name}: invalid hex character {:?} in {text:?}", other.to_string()));
    }
    if count == 17 && digits != SPACE_END {
        return Err(format!(
            "{name}: 17-digit hex value must be '0x10000000000000000' (2^64), got {text:?}"
        ));
    }
    if count < 16 {
        return Err(format!(
            "{name} must be a 0x-prefixed 16-digit hex value, got {text:?} (did you mean \
             \"0x{digits:0>16}\"?)"
        ));
    }
    u128::from_str_radix(digits, 16).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
