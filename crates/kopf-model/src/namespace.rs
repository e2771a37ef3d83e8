//! Patterns of namespaces that an operator serves: names, globs with negations, regexps.

use regex::Regex;

/// One pattern; an operator serves a namespace when any of its patterns matches.
#[derive(Clone, Debug)]
pub struct NamespacePattern {
    text: String,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Globs(Vec<Glob>),
    Regex(Regex),
}

#[derive(Clone, Debug)]
struct Glob {
    regex: Regex,
    is_negated: bool,
}

/// Why a pattern cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the namespace pattern {pattern:?} is not valid")]
pub struct PatternError {
    /// The pattern.
    pub pattern: String,
    source: Box<regex::Error>,
}

impl NamespacePattern {
    /// Reads comma-separated globs such as `prod-*, !prod-test`; `*`, `?` and `[seq]` have their
    /// usual meaning, and a leading `!` excludes.
    ///
    /// # Errors
    /// Fails when a set of characters is malformed.
    pub fn globs(text: &str) -> Result<Self, PatternError> {
        let mut globs = Vec::new();
        for (index, glob) in text.split(',').map(str::trim).enumerate() {
            let is_negated = glob.starts_with('!');
            if index == 0 && is_negated {
                globs.push(Glob { regex: compile(text, "*")?, is_negated: false });
            }
            let regex = compile(text, glob.trim_start_matches('!'))?;
            globs.push(Glob { regex, is_negated });
        }
        Ok(Self { text: text.to_owned(), kind: Kind::Globs(globs) })
    }

    /// Takes a regular expression that must match the whole name.
    ///
    /// # Errors
    /// Fails when the expression is malformed.
    pub fn regex(expression: &str) -> Result<Self, PatternError> {
        let regex = anchored(expression, expression)?;
        Ok(Self { text: expression.to_owned(), kind: Kind::Regex(regex) })
    }

    /// Whether a namespace matches.
    #[must_use]
    pub fn matches(&self, namespace: &str) -> bool {
        match &self.kind {
            Kind::Regex(regex) => regex.is_match(namespace),
            Kind::Globs(globs) => {
                let mut globs = globs.iter();
                let Some(first) = globs.next() else { return false };
                // The first glob is the frame: later ones never bring in what is outside of it.
                let is_inside = first.regex.is_match(namespace);
                globs.fold(is_inside, |matches, glob| {
                    let is_match = glob.regex.is_match(namespace);
                    if glob.is_negated {
                        matches && !is_match
                    } else {
                        matches || (is_inside && is_match)
                    }
                })
            }
        }
    }

    /// The only name that can match, when the pattern is just a name.
    #[must_use]
    pub fn exact_name(&self) -> Option<&str> {
        let is_plain =
            matches!(self.kind, Kind::Globs(_)) && !self.text.contains(['!', '*', '?', ',']);
        is_plain.then(|| self.text.trim())
    }
}

fn compile(whole: &str, glob: &str) -> Result<Regex, PatternError> {
    let mut expression = String::with_capacity(glob.len() * 2);
    let mut rest = glob;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        match character {
            '*' => expression.push_str(".*"),
            '?' => expression.push('.'),
            '[' => match set_length(rest) {
                Some(length) => {
                    push_set(&mut expression, &rest[..length]);
                    rest = &rest[length + 1..];
                }
                None => expression.push_str(r"\["),
            },
            other => expression.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    anchored(whole, &expression)
}

/// The length of a set of characters up to its closing bracket, if it is closed.
fn set_length(rest: &str) -> Option<usize> {
    let start = usize::from(rest.starts_with('!'));
    // A bracket right at the beginning is a member, not the end.
    let start = start + usize::from(rest[start..].starts_with(']'));
    rest[start..].find(']').map(|end| start + end)
}

fn push_set(expression: &mut String, set: &str) {
    let (negation, members) = match set.strip_prefix('!') {
        Some(members) => ("^", members),
        None => ("", set),
    };
    let members = members.replace('\\', r"\\").replace('[', r"\[").replace(']', r"\]");
    let members = members.replace('^', r"\^").replace('&', r"\&").replace('~', r"\~");
    expression.push_str(&format!("[{negation}{members}]"));
}

fn anchored(pattern: &str, expression: &str) -> Result<Regex, PatternError> {
    Regex::new(&format!("^(?s:{expression})$"))
        .map_err(|source| PatternError { pattern: pattern.to_owned(), source: Box::new(source) })
}

impl std::fmt::Display for NamespacePattern {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests;
