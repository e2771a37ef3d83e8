//! How later releases say the same in errors.
//!
//! Pure: compares two texts.

/// The end of a text before, and in the later release.
const WORDS: [(&str, &str); 15] = [
    (": message must not contain line breaks", ": must not contain line breaks"),
    (": fieldPath must be a valid path", ": must be a valid path"),
    (": name is not a valid CEL identifier", ": must be a valid CEL identifier"),
    (": kind must not be empty", ": must not be empty"),
    (": name must not be empty", ": must not be empty"),
    (": uid must not be empty", ": must not be empty"),
    ("Required value: kind is required", "Required value"),
    ("Required value: name is required", "Required value"),
    ("Required value: must be set", "Required value"),
    ("Required value: must not be empty", "Required value"),
    ("Required value: schemas are required", "Required value"),
    (" characters", " bytes"),
    (
        ": type must be 'Exempt' if and only if name is 'exempt'",
        ": must be 'Exempt' if and only if `name` is 'exempt'",
    ),
    (" when `pod.Spec.HostUsers` is false", " when `hostUsers` is false"),
    (" `configMapKeyRef` or `secretKeyRef`", " `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"),
];

/// Kinds of errors whose text shows a value, as Go prints it, or as JSON in later releases.
const KINDS: [&str; 4] =
    ["Invalid value: ", "Unsupported value: ", "Duplicate value: ", "Not found: "];

/// Whether the texts differ only in the words of the detail.
pub(super) fn says_in_other_words(judge: &str, subject: &str) -> bool {
    WORDS.iter().any(|(before, after)| {
        let starts = subject.strip_suffix(before).zip(judge.strip_suffix(after));
        starts.is_some_and(|(subject, judge)| subject == judge)
    })
}

/// Whether two error texts differ only in how they print the refused value.
pub(super) fn shows_value_otherwise(judge: &str, subject: &str) -> bool {
    KINDS.iter().any(|kind| {
        let halves = judge.split_once(kind).zip(subject.split_once(kind));
        let Some(((start, left), (other_start, right))) = halves else { return false };
        start == other_start && detail(left, right).is_some()
    })
}

/// Whether the later text leaves out the type that stood for the value: `"object": no`, now `no`.
pub(super) fn omits_type(judge: &str, subject: &str) -> bool {
    const TYPES: [&str; 3] = ["\"object\": ", "\"array\": ", "\"null\": "];
    let kind = KINDS[0];
    let halves = judge.split_once(kind).zip(subject.split_once(kind));
    let Some(((start, left), (other_start, right))) = halves else { return false };
    let is_null = left.strip_prefix("null: ").zip(right.strip_prefix("\"null\": "));
    start == other_start
        && (TYPES.iter().any(|prefix| right.strip_prefix(prefix) == Some(left))
            || is_null.is_some_and(|(left, right)| left == right))
}

/// What follows the value in both texts; a duplicate value has nothing after it.
fn detail<'a>(left: &'a str, right: &'a str) -> Option<&'a str> {
    if left.trim_matches('"') == right {
        return Some("");
    }
    // Values are printed in different lengths, so the common end is the detail.
    let mut places = left.match_indices(": ").map(|(place, _)| &left[place..]);
    match places.find(|end| right.ends_with(end)) {
        Some(end) => Some(end),
        None => (!is_text(left) && !is_text(right)).then_some(""),
    }
}

/// Whether the rest of the text is a sentence, not a printed value.
fn is_text(rest: &str) -> bool {
    let ends_as_value = rest.ends_with(['}', ']', '"', ')']);
    !ends_as_value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_words_are_known_ones_in_the_same_place() {
        let says = |judge: &str, subject: &str| says_in_other_words(judge, subject);
        assert!(says("Required value", "Required value: must not be empty"));
        assert!(says(
            "Invalid value: \"\": must not be empty",
            "Invalid value: \"\": uid must not be empty"
        ));
        assert!(!says(
            "Invalid value: \"a\": must not be empty",
            "Invalid value: \"\": uid must not be empty"
        ));
        assert!(!says("Required value", "Required value: anything else"));
    }

    #[test]
    fn types_of_values_are_left_out() {
        assert!(omits_type("Invalid value: no", "Invalid value: \"object\": no"));
        assert!(omits_type("Invalid value: null: no", "Invalid value: \"null\": no"));
        assert!(!omits_type("Invalid value: no", "Invalid value: \"object\": yes"));
        assert!(!omits_type("Invalid value: no", "Invalid value: \"x\": no"));
    }
}
