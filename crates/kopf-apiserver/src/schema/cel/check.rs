//! Finds rules that upstream's compiler refuses: bad syntax, unknown names and fields.
//!
//! A partial type check. It follows `self` through the schema and says nothing where it does not
//! know the type, so that no good rule is refused.

use std::collections::HashMap;

use kube_cel::cel::common::ast::{ComprehensionExpr, Expr, IdedExpr, LiteralValue, operators};

use super::convert::escape;
use super::program::parse;
use crate::schema::ir::{Schema, Type};

/// What upstream's compiler says about an expression on a node of this schema, if it complains.
///
/// The text is what follows `compilation failed: `.
pub(crate) fn compile_problem(schema: &Schema, source: &str, result: Wanted) -> Option<String> {
    let expression = match parse(source) {
        Ok(expression) => expression,
        Err(errors) => {
            let error = errors.errors.first()?;
            let column = usize::try_from(error.pos.1).unwrap_or(1).max(1);
            let line = usize::try_from(error.pos.0).unwrap_or(1).max(1);
            return Some(located(source, line, column, &error.msg));
        }
    };
    let mut checker = Checker { problem: None, variables: HashMap::new() };
    checker.variables.insert("self".to_owned(), Known::of(schema));
    checker.variables.insert("oldSelf".to_owned(), Known::of(schema));
    let found = checker.infer(&expression);
    if let Some(problem) = checker.problem {
        return Some(problem.text(source));
    }
    let fits = match (result, found) {
        (_, Known::Anything) => true,
        (Wanted::Boolean, known) => known.name() == "bool",
        (Wanted::Text, known) => known.name() == "string",
    };
    (!fits).then(|| match result {
        Wanted::Boolean => "must evaluate to a bool".to_owned(),
        Wanted::Text => "must evaluate to a string".to_owned(),
    })
}

/// What an expression has to yield.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Boolean,
    Text,
}

/// What is known about the type of an expression.
#[derive(Clone, Copy)]
enum Known<'schema> {
    Anything,
    Scalar(&'static str),
    Node(&'schema Schema),
}

impl<'schema> Known<'schema> {
    fn of(schema: &'schema Schema) -> Self {
        let format = schema.format.as_deref().unwrap_or_default();
        match (schema.int_or_string, schema.kind) {
            (true, _) | (_, None) => Self::Anything,
            (_, Some(Type::String)) => match format {
                "date-time" | "date" | "duration" | "byte" => Self::Anything,
                _ => Self::Scalar("string"),
            },
            (_, Some(Type::Integer)) => Self::Scalar("int"),
            (_, Some(Type::Number)) => Self::Scalar("double"),
            (_, Some(Type::Boolean)) => Self::Scalar("bool"),
            (_, Some(Type::Object | Type::Array)) => Self::Node(schema),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Anything => "dyn",
            Self::Scalar(name) => name,
            Self::Node(schema) if schema.kind == Some(Type::Array) => "list",
            Self::Node(_) => "object",
        }
    }
}

enum Problem {
    UndefinedField(String),
    UndeclaredReference(String),
    NoOverload { operator: String, left: &'static str, right: &'static str },
}

impl Problem {
    fn text(&self, source: &str) -> String {
        let (at, words) = match self {
            Self::UndefinedField(field) => {
                let at = find(source, &format!(".{field}")).or_else(|| find(source, field));
                (at, format!("undefined field '{field}'"))
            }
            Self::UndeclaredReference(name) => {
                let words = format!("undeclared reference to '{name}' (in container '')");
                (find(source, name), words)
            }
            Self::NoOverload { operator, left, right } => {
                let symbol = operator.trim_matches('_');
                let words = format!(
                    "found no matching overload for '{operator}' applied to '({left}, {right})'"
                );
                (find(source, &format!(" {symbol} ")).map(|at| at + 1), words)
            }
        };
        let before = &source[..at.unwrap_or_default()];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        located(source, line, column, &words)
    }
}

fn find(source: &str, part: &str) -> Option<usize> {
    let ends = |at: usize| {
        let next = source[at + part.len()..].chars().next();
        !next.is_some_and(|character| character.is_alphanumeric() || character == '_')
    };
    source.match_indices(part).map(|(at, _)| at).find(|at| part.ends_with(' ') || ends(*at))
}

fn located(source: &str, line: usize, column: usize, words: &str) -> String {
    let text = source.lines().nth(line - 1).unwrap_or_default();
    let dots = ".".repeat(column - 1);
    format!("ERROR: <input>:{line}:{column}: {words}\n | {text}\n | {dots}^")
}

struct Checker<'schema> {
    problem: Option<Problem>,
    variables: HashMap<String, Known<'schema>>,
}

impl<'schema> Checker<'schema> {
    fn infer(&mut self, expression: &IdedExpr) -> Known<'schema> {
        match &expression.expr {
            Expr::Literal(literal) => literal_type(literal),
            Expr::Ident(name) => self.identifier(name),
            Expr::Select(select) => {
                if is_namespace(&select.operand) {
                    return Known::Anything;
                }
                let operand = self.infer(&select.operand);
                let field = self.field(operand, &select.field);
                if select.test { Known::Scalar("bool") } else { field }
            }
            Expr::Call(call) => {
                let named = call.target.as_deref().filter(|target| !is_namespace(target));
                let target = named.map(|target| self.infer(target));
                let arguments: Vec<Known<'schema>> =
                    call.args.iter().map(|argument| self.infer(argument)).collect();
                self.call(&call.func_name, target, &arguments)
            }
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::List(list) => {
                list.elements.iter().for_each(|element| {
                    self.infer(element);
                });
                Known::Anything
            }
            _ => Known::Anything,
        }
    }

    fn identifier(&mut self, name: &str) -> Known<'schema> {
        if let Some(known) = self.variables.get(name) {
            return *known;
        }
        const TYPES: [&str; 14] = [
            "bool",
            "bytes",
            "double",
            "duration",
            "dyn",
            "int",
            "list",
            "map",
            "null_type",
            "string",
            "timestamp",
            "type",
            "uint",
            "optional_type",
        ];
        if !TYPES.contains(&name) && !name.starts_with(['@', '#', '_']) {
            self.complain(Problem::UndeclaredReference(name.to_owned()));
        }
        Known::Anything
    }

    fn field(&mut self, operand: Known<'schema>, field: &str) -> Known<'schema> {
        let Known::Node(schema) = operand else { return Known::Anything };
        if let Some(values) = schema.values() {
            return Known::of(values);
        }
        if schema.kind != Some(Type::Object) {
            return Known::Anything;
        }
        let declared = schema.properties.iter().find(|(name, _)| escape(name) == field);
        match declared {
            Some((_, property)) => Known::of(property),
            None => {
                self.complain(Problem::UndefinedField(field.to_owned()));
                Known::Anything
            }
        }
    }

    fn call(
        &mut self,
        name: &str,
        target: Option<Known<'schema>>,
        arguments: &[Known<'schema>],
    ) -> Known<'schema> {
        match (name, arguments) {
            (
                operators::EQUALS
                | operators::NOT_EQUALS
                | operators::LESS
                | operators::LESS_EQUALS
                | operators::GREATER
                | operators::GREATER_EQUALS,
                [left, right],
            ) => {
                self.comparison(name, *left, *right);
                Known::Scalar("bool")
            }
            (operators::LOGICAL_AND | operators::LOGICAL_OR | operators::LOGICAL_NOT, _)
            | (operators::IN | "startsWith" | "endsWith" | "contains" | "matches", _) => {
                Known::Scalar("bool")
            }
            ("size", _) => Known::Scalar("int"),
            (operators::INDEX, [container, _]) => element(*container),
            (operators::CONDITIONAL, [_, yes, no]) if yes.name() == no.name() => *yes,
            (operators::ADD, [left @ Known::Scalar(one), Known::Scalar(other)]) if one == other => {
                *left
            }
            ("lowerAscii" | "upperAscii" | "trim" | "replace" | "substring", _)
                if target.is_some_and(|target| target.name() == "string") =>
            {
                Known::Scalar("string")
            }
            _ => Known::Anything,
        }
    }

    fn comparison(&mut self, operator: &str, left: Known<'schema>, right: Known<'schema>) {
        let (Known::Scalar(left), Known::Scalar(right)) = (left, right) else { return };
        let numbers = ["int", "double", "uint"];
        // Numbers of different types may be ordered but not compared for equality.
        let ordered = !matches!(operator, operators::EQUALS | operators::NOT_EQUALS);
        let fits = left == right
            || [left, right].contains(&"null")
            || (ordered && numbers.contains(&left) && numbers.contains(&right));
        if !fits {
            self.complain(Problem::NoOverload { operator: operator.to_owned(), left, right });
        }
    }

    fn comprehension(&mut self, comprehension: &ComprehensionExpr) -> Known<'schema> {
        let range = self.infer(&comprehension.iter_range);
        let start = self.infer(&comprehension.accu_init);
        let item = match range {
            Known::Node(schema) if schema.values().is_some() => Known::Scalar("string"),
            range => element(range),
        };
        let is_binding = comprehension.iter_var == "#unused";
        let accumulator = if is_binding { start } else { Known::Anything };
        let names = [
            (comprehension.iter_var.clone(), item),
            (comprehension.accu_var.clone(), accumulator),
            (comprehension.iter_var2.clone().unwrap_or_default(), Known::Anything),
        ];
        let shadowed: Vec<_> = names
            .into_iter()
            .map(|(name, known)| (name.clone(), self.variables.insert(name, known)))
            .collect();
        self.infer(&comprehension.loop_step);
        let result = self.infer(&comprehension.result);
        for (name, previous) in shadowed {
            match previous {
                Some(known) => self.variables.insert(name, known),
                None => self.variables.remove(&name),
            };
        }
        if is_binding || matches!(start, Known::Scalar("bool")) { result } else { Known::Anything }
    }

    fn complain(&mut self, problem: Problem) {
        if self.problem.is_none() {
            self.problem = Some(problem);
        }
    }
}

fn element<'schema>(container: Known<'schema>) -> Known<'schema> {
    match container {
        Known::Node(schema) => schema.item().or(schema.values()).map_or(Known::Anything, Known::of),
        _ => Known::Anything,
    }
}

fn literal_type(literal: &LiteralValue) -> Known<'static> {
    Known::Scalar(match literal {
        LiteralValue::Boolean(_) => "bool",
        LiteralValue::Bytes(_) => "bytes",
        LiteralValue::Double(_) => "double",
        LiteralValue::Int(_) => "int",
        LiteralValue::Null => "null",
        LiteralValue::String(_) => "string",
        LiteralValue::UInt(_) => "uint",
    })
}

/// `math`, `sets` and the like, which stand before functions and are no variables.
fn is_namespace(expression: &IdedExpr) -> bool {
    const NAMESPACES: [&str; 10] = [
        "math",
        "sets",
        "strings",
        "lists",
        "optional",
        "base64",
        "format",
        "cel",
        "jsonpatch",
        "google",
    ];
    match &expression.expr {
        Expr::Ident(name) => NAMESPACES.contains(&name.as_str()),
        Expr::Select(select) => is_namespace(&select.operand),
        _ => false,
    }
}
