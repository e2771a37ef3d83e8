//! Compares two normalised values whose identities are numbered separately.
//!
//! Pure, and needs only `serde_json`: the golden replay of the embedded server includes this file
//! by path, together with `normalise`. Ordinals such as `<rv:7>` are equal if they have always been
//! paired, so that one additional object on one side does not make everything after it differ.

use serde_json::Value;

/// A place where two values differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The location as a JSON pointer.
    pub pointer: String,
    /// The value of the reference server; `None` if absent.
    pub judge: Option<Value>,
    /// The value of the other server; `None` if absent.
    pub subject: Option<Value>,
}

/// Pairs the ordinals of the two servers.
#[derive(Default)]
pub struct Pairing {
    pairs: Vec<(String, String)>,
}

impl Pairing {
    /// All differences between the values, given the pairs so far.
    pub fn differences(&mut self, judge: &Value, subject: &Value) -> Vec<Difference> {
        let mut found = Vec::new();
        self.diff(String::new(), Some(judge), Some(subject), &mut found);
        found
    }

    fn diff(
        &mut self,
        pointer: String,
        judge: Option<&Value>,
        subject: Option<&Value>,
        found: &mut Vec<Difference>,
    ) {
        match (judge, subject) {
            (Some(Value::Object(left)), Some(Value::Object(right))) => {
                for (field, value) in left {
                    self.diff(format!("{pointer}/{field}"), Some(value), right.get(field), found);
                }
                for (field, value) in right.iter().filter(|(field, _)| !left.contains_key(*field)) {
                    self.diff(format!("{pointer}/{field}"), None, Some(value), found);
                }
            }
            (Some(Value::Array(left)), Some(Value::Array(right))) => {
                for index in 0..left.len().max(right.len()) {
                    let place = format!("{pointer}/{index}");
                    self.diff(place, left.get(index), right.get(index), found);
                }
            }
            (Some(Value::String(left)), Some(Value::String(right))) if self.agree(left, right) => {}
            (judge, subject) if judge == subject && !judge.is_some_and(Value::is_string) => {}
            _ => {
                found.push(Difference { pointer, judge: judge.cloned(), subject: subject.cloned() })
            }
        }
    }

    /// Whether texts are equal, apart from paired ordinals.
    fn agree(&mut self, left: &str, right: &str) -> bool {
        let (left, right) = (pieces(left), pieces(right));
        left.len() == right.len()
            && left.iter().zip(&right).all(|(left, right)| self.piece_agrees(left, right))
    }

    fn piece_agrees(&mut self, left: &str, right: &str) -> bool {
        let (Some(kind), Some(other)) = (ordinal_kind(left), ordinal_kind(right)) else {
            return left == right;
        };
        if kind != other {
            return false;
        }
        if self.pairs.iter().any(|(known, partner)| known == left && partner == right) {
            return true;
        }
        // A mismatch is reported once; from then on, the new pair is used.
        let before = self.pairs.len();
        self.pairs.retain(|(known, partner)| known != left && partner != right);
        let is_first = self.pairs.len() == before;
        self.pairs.push((left.to_owned(), right.to_owned()));
        is_first
    }
}

/// Splits at ordinals: `a <uid:1> b` is `a `, `<uid:1>`, ` b`.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut plain = 0;
    for (start, _) in text.match_indices('<') {
        let Some(length) = text[start..].find('>') else { continue };
        let end = start + length + 1;
        if start >= plain && ordinal_kind(&text[start..end]).is_some() {
            pieces.push(&text[plain..start]);
            pieces.push(&text[start..end]);
            plain = end;
        }
    }
    pieces.push(&text[plain..]);
    pieces
}

/// `uid` of `<uid:12>`.
fn ordinal_kind(piece: &str) -> Option<&str> {
    let (kind, number) = piece.strip_prefix('<')?.strip_suffix('>')?.split_once(':')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && matches!(kind, "uid" | "rv" | "ip" | "generated")).then_some(kind)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn count(pairing: &mut Pairing, judge: Value, subject: Value) -> usize {
        pairing.differences(&judge, &subject).len()
    }

    #[test]
    fn a_shift_of_ordinals_is_no_difference() {
        let mut pairing = Pairing::default();
        assert_eq!(
            count(&mut pairing, json!(["<rv:1>", "<rv:2>"]), json!(["<rv:5>", "<rv:6>"])),
            0
        );
        assert_eq!(count(&mut pairing, json!("at <rv:1>"), json!("at <rv:5>")), 0);
    }

    #[test]
    fn an_identity_that_changes_is_a_difference() {
        let mut pairing = Pairing::default();
        assert_eq!(count(&mut pairing, json!("<uid:1>"), json!("<uid:1>")), 0);
        assert_eq!(count(&mut pairing, json!("<uid:1>"), json!("<uid:2>")), 1);
        assert_eq!(count(&mut pairing, json!("<uid:2>"), json!("<uid:2>")), 1);
    }

    #[test]
    fn other_text_is_compared_as_it_is() {
        let mut pairing = Pairing::default();
        assert_eq!(count(&mut pairing, json!("a <uid:1>"), json!("b <uid:1>")), 1);
        assert_eq!(count(&mut pairing, json!("<time>"), json!("<microtime>")), 1);
        assert_eq!(count(&mut pairing, json!({"a": 1, "b": [1]}), json!({"a": 1, "b": [1, 2]})), 1);
        assert_eq!(count(&mut pairing, json!({"a": null}), json!({})), 1);
    }
}
