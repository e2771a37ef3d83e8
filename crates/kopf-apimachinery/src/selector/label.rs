//! Label selectors in their text form: `a=b,c!=d,e in (f,g),h,!i,j>1`.

use serde_json::Value;

/// A conjunction of requirements on labels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    Exists,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
    Greater(i64),
    Less(i64),
}

impl LabelSelector {
    /// Parses the text form, with upstream's error messages.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser { tokens: tokens(text), index: 0 };
        let requirements = parser.requirements()?;
        Ok(Self { requirements })
    }

    /// Whether everything matches.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether a label map (or null) matches every requirement.
    pub fn matches(&self, labels: &Value) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = labels.get(&requirement.key).and_then(Value::as_str);
            match (&requirement.test, value) {
                (Test::Exists, value) => value.is_some(),
                (Test::Absent, value) => value.is_none(),
                (Test::In(set), Some(value)) => set.iter().any(|item| item == value),
                (Test::NotIn(set), Some(value)) => set.iter().all(|item| item != value),
                (Test::NotIn(_), None) => true,
                (Test::Greater(bound), Some(value)) => {
                    value.parse::<i64>().is_ok_and(|value| value > *bound)
                }
                (Test::Less(bound), Some(value)) => {
                    value.parse::<i64>().is_ok_and(|value| value < *bound)
                }
                (Test::In(_) | Test::Greater(_) | Test::Less(_), None) => false,
            }
        })
    }
}

fn tokens(text: &str) -> Vec<String> {
    const SPECIAL: &[char] = &['(', ')', ',', '!', '=', '<', '>'];
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if SPECIAL.contains(&first) {
            match rest.as_bytes() {
                [b'=', b'=', ..] | [b'!', b'=', ..] => 2,
                _ => 1,
            }
        } else {
            rest.find(|character: char| character.is_whitespace() || SPECIAL.contains(&character))
                .unwrap_or(rest.len())
        };
        tokens.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    tokens
}

struct Parser {
    tokens: Vec<String>,
    index: usize,
}

impl Parser {
    fn peek(&self) -> &str {
        self.tokens.get(self.index).map_or("", String::as_str)
    }

    fn next(&mut self) -> String {
        let token = self.peek().to_owned();
        self.index += 1;
        token
    }

    fn requirements(&mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        if self.tokens.is_empty() {
            return Ok(requirements);
        }
        loop {
            match self.peek() {
                "!" => {}
                first if is_operator(first) => {
                    return Err(format!(
                        "found '{first}', expected: !, identifier, or 'end of string'"
                    ));
                }
                _ => {}
            }
            let requirement = self
                .requirement()
                .map_err(|problem| format!("unable to parse requirement: {problem}"))?;
            requirements.push(requirement);
            match self.next().as_str() {
                "" => return Ok(requirements),
                "," => match self.peek() {
                    "" => return Err("found '', expected: identifier after ','".to_owned()),
                    "," => return Err("found ',', expected: identifier after ','".to_owned()),
                    _ => {}
                },
                other => return Err(format!("found '{other}', expected: ',' or 'end of string'")),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let absent = self.peek() == "!";
        if absent {
            self.index += 1;
        }
        let key = self.next();
        if key.is_empty() || is_operator(&key) {
            return Err(format!("found '{key}', expected: identifier"));
        }
        crate::meta::check_qualified_name(&key)
            .map_err(|problem| format!("<nil>: Invalid value: {key:?}: {problem}"))?;
        if absent {
            return Ok(Requirement { key, test: Test::Absent });
        }
        if matches!(self.peek(), "" | ",") {
            return Ok(Requirement { key, test: Test::Exists });
        }
        let operator = self.next();
        let test = match operator.as_str() {
            "=" | "==" => Test::In(vec![self.value(&key)?]),
            "!=" => Test::NotIn(vec![self.value(&key)?]),
            ">" => Test::Greater(self.bound(&key)?),
            "<" => Test::Less(self.bound(&key)?),
            "in" => Test::In(self.set()?),
            "notin" => Test::NotIn(self.set()?),
            other => {
                return Err(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt"));
            }
        };
        Ok(Requirement { key, test })
    }

    fn value(&mut self, key: &str) -> Result<String, String> {
        match self.peek() {
            "" | "," => Ok(String::new()),
            other if is_operator(other) => Err(format!("found '{other}', expected: identifier")),
            _ => {
                let value = self.next();
                crate::meta::check_label_value(&value).map_err(|problem| {
                    format!("values[0][{key}]: Invalid value: {value:?}: {problem}")
                })?;
                Ok(value)
            }
        }
    }

    fn bound(&mut self, key: &str) -> Result<i64, String> {
        let value = self.value(key)?;
        value.parse().map_err(|_| {
            format!(
                "values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer"
            )
        })
    }

    fn set(&mut self) -> Result<Vec<String>, String> {
        let open = self.next();
        if open != "(" {
            return Err(format!("found '{open}' expected: '('"));
        }
        let mut values = Vec::new();
        loop {
            match self.next().as_str() {
                ")" => {
                    if values.is_empty() {
                        values.push(String::new());
                    }
                    return Ok(values);
                }
                "," => {
                    if matches!(self.peek(), "," | ")") {
                        values.push(String::new());
                    }
                }
                "" if values.is_empty() => {
                    return Err("found '', expected: ',', ')' or identifier".to_owned());
                }
                "" => return Err("found '', expected: ',' or ')'".to_owned()),
                value if is_operator(value) => {
                    return Err(format!("found '{value}', expected: ',', or identifier"));
                }
                value => values.push(value.to_owned()),
            }
        }
    }
}

fn is_operator(token: &str) -> bool {
    matches!(token, "(" | ")" | "," | "!" | "=" | "==" | "!=" | "<" | ">")
}
