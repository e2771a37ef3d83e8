//! The namespaces that an operator serves: comma-separated globs with negation, as in Kopf, or
//! regular expressions.

use regex::Regex;

/// A pattern of namespace names, such as `team-*, !team-test`.
#[derive(Clone, Debug)]
pub struct NamespacePattern {
    text: String,
    globs: Vec<Glob>,
    regex: Option<Regex>,
}

/// A regular expression for namespaces is malformed.
#[derive(Debug, thiserror::Error)]
#[error("`{text}` is not a valid namespace pattern")]
pub struct InvalidNamespacePattern {
    /// The expression.
    pub text: String,
    /// The error in it.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

impl PartialEq for NamespacePattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.regex.is_some() == other.regex.is_some()
    }
}

impl Eq for NamespacePattern {}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Glob {
    negated: bool,
    pattern: Vec<char>,
}

impl NamespacePattern {
    /// Parses a pattern.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut globs: Vec<Glob> = text
            .split(',')
            .map(str::trim)
            .map(|part| Glob {
                negated: part.starts_with('!'),
                pattern: part.trim_start_matches('!').chars().collect(),
            })
            .collect();
        if globs.first().is_some_and(|first| first.negated) {
            globs.insert(0, Glob { negated: false, pattern: vec!['*'] });
        }
        Self { text: text.trim().to_owned(), globs, regex: None }
    }

    /// Parses a regular expression, which must match whole names.
    ///
    /// # Errors
    /// Fails if it is malformed.
    pub fn regex(text: &str) -> Result<Self, InvalidNamespacePattern> {
        let regex = Regex::new(&format!("^(?:{text})$")).map_err(|source| {
            InvalidNamespacePattern { text: text.to_owned(), source: source.into() }
        })?;
        Ok(Self { text: text.to_owned(), globs: Vec::new(), regex: Some(regex) })
    }

    /// Whether a namespace matches.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        if let Some(regex) = &self.regex {
            return regex.is_match(name);
        }
        let name: Vec<char> = name.chars().collect();
        let mut globs = self.globs.iter();
        let Some(first) = globs.next() else { return false };
        let first = matches_glob(&first.pattern, &name);
        globs.fold(first, |result, glob| {
            let matched = matches_glob(&glob.pattern, &name);
            if glob.negated { result && !matched } else { result || (first && matched) }
        })
    }

    /// The name, if the pattern is a plain name.
    #[must_use]
    pub fn exact(&self) -> Option<&str> {
        let is_plain = self.regex.is_none()
            && !self.text.contains(['!', '*', '?', ',', '['])
            && !self.text.is_empty();
        is_plain.then_some(self.text.as_str())
    }
}

impl From<&str> for NamespacePattern {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl std::fmt::Display for NamespacePattern {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// `*`, `?`, `[abc]`, `[a-z]`, `[!abc]`, as in Python's `fnmatch`.
fn matches_glob(pattern: &[char], name: &[char]) -> bool {
    match pattern.first() {
        None => name.is_empty(),
        Some('*') => (0..=name.len()).any(|skipped| matches_glob(&pattern[1..], &name[skipped..])),
        Some('?') => !name.is_empty() && matches_glob(&pattern[1..], &name[1..]),
        Some('[') => match (closing(pattern), name.first()) {
            (Some(end), Some(letter)) => {
                in_set(&pattern[1..end], *letter) && matches_glob(&pattern[end + 1..], &name[1..])
            }
            (Some(_), None) => false,
            (None, _) => name.first() == Some(&'[') && matches_glob(&pattern[1..], &name[1..]),
        },
        Some(letter) => name.first() == Some(letter) && matches_glob(&pattern[1..], &name[1..]),
    }
}

fn closing(pattern: &[char]) -> Option<usize> {
    let mut start = 1;
    if pattern.get(start) == Some(&'!') {
        start += 1;
    }
    // A bracket right at the beginning of the set is one of its members.
    (start + 1..pattern.len()).find(|index| pattern[*index] == ']')
}

fn in_set(set: &[char], letter: char) -> bool {
    let (negated, set) = match set.first() {
        Some('!') => (true, &set[1..]),
        _ => (false, set),
    };
    let mut index = 0;
    let mut found = false;
    while index < set.len() {
        if index + 2 < set.len() && set[index + 1] == '-' {
            found |= set[index] <= letter && letter <= set[index + 2];
            index += 3;
        } else {
            found |= set[index] == letter;
            index += 1;
        }
    }
    found != negated
}

#[cfg(test)]
mod tests;
