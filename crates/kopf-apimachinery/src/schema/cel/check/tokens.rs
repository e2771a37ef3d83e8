//! Scans the source of an expression to determine positions.

/// A position in the source that only moves forward.
pub(super) struct Cursor<'a> {
    source: &'a str,
    position: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        Self { source, position: 0 }
    }

    pub(super) fn position(&self) -> usize {
        self.position
    }

    /// Moves past the next occurrence of a text and returns its position.
    pub(super) fn find(&mut self, text: &str) -> usize {
        let Some(at) = self.next(text, self.position) else { return self.position };
        self.position = at + text.len();
        at
    }

    /// Moves past `name` and returns the position of the `mark` after it.
    pub(super) fn find_after(&mut self, name: &str, mark: &str) -> usize {
        self.find(name);
        self.find(mark)
    }

    /// Moves past `mark`, which precedes `name`, and returns the position of the mark.
    pub(super) fn find_before(&mut self, mark: &str, name: &str) -> usize {
        let mut from = self.position;
        while let Some(at) = self.next(mark, from) {
            let rest = self.source[at + mark.len()..].trim_start();
            if rest.starts_with(name) {
                self.position = self.source.len() - rest.len() + name.len();
                return at;
            }
            from = at + mark.len();
        }
        self.position
    }

    /// The position of the next literal.
    pub(super) fn literal(&mut self) -> usize {
        let rest = &self.source[self.position..];
        let skipped = rest.find(|character: char| {
            character.is_alphanumeric() || matches!(character, '"' | '\'' | '-' | '.')
        });
        let at = self.position + skipped.unwrap_or(0);
        let rest = &self.source[at..];
        let length = match rest.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let mut escaped = false;
                let end = rest[1..].find(|character| {
                    let ends = character == quote && !escaped;
                    escaped = character == '\\' && !escaped;
                    ends
                });
                end.map_or(rest.len(), |end| end + 2)
            }
            Some(_) => rest
                .find(|character: char| !character.is_alphanumeric() && !"-._".contains(character))
                .unwrap_or(rest.len()),
            None => 0,
        };
        self.position = at + length;
        at
    }

    /// The next occurrence that is not part of a longer word.
    fn next(&self, text: &str, from: usize) -> Option<usize> {
        let is_word = |character: char| character.is_alphanumeric() || character == '_';
        let fits = |at: &usize| {
            if !text.starts_with(is_word) {
                return true;
            }
            let before = self.source[..*at].chars().next_back().is_some_and(is_word);
            let after = self.source[at + text.len()..].chars().next().is_some_and(is_word);
            !before && !after
        };
        let rest = self.source.get(from..)?;
        rest.match_indices(text).map(|(at, _)| from + at).find(fits)
    }
}

/// A problem at an offset, as upstream prints it.
pub(super) fn at(source: &str, offset: usize, words: &str) -> String {
    let before = source.get(..offset).unwrap_or(source);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    located(source, line, column, words)
}

/// A problem at a line and a column, as upstream prints it.
pub(super) fn located(source: &str, line: usize, column: usize, words: &str) -> String {
    let text = source.lines().nth(line - 1).unwrap_or_default();
    let dots = ".".repeat(column - 1);
    format!("ERROR: <input>:{line}:{column}: {words}\n | {text}\n | {dots}^")
}
