//! Finds rules that upstream's compiler rejects: bad syntax, unknown names, wrong types.
//!
//! A type checker that follows `self` through the schema. Where it does not know a type, it reports
//! nothing, so that no valid rule is rejected. The parser keeps no positions, so the checker walks
//! an expression in source order and finds positions by scanning along.

mod functions;
mod kinds;
mod tokens;

use std::collections::HashMap;

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SelectExpr, StructExpr,
    operators,
};

use self::kinds::Kind;
use self::tokens::Cursor;
use super::convert::escape;
use super::literals::{JSON_PATCH, JSON_PATCH_FIELDS, OBJECT, is_type};
use super::program::parse_unexpanded;
use crate::schema::ir::Schema;
use crate::schema::patterns;

/// The required result type of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// A boolean.
    Boolean,
    /// A string.
    Text,
    /// A string or null.
    TextOrNull,
    /// The object of an apply configuration.
    Object,
    /// The operations of a JSON patch.
    JsonPatch,
    /// Any value.
    Anything,
}

/// The error of upstream's compiler about an expression on a node of this schema, if any.
///
/// Returns the text that follows `compilation failed: ` or `cel expression `.
pub fn compile_problem(schema: &Schema, source: &str, result: Wanted) -> Option<String> {
    compile_problem_of(schema, source, false, result)
}

/// The same for an expression whose `oldSelf` may be optional.
pub fn compile_problem_of(
    schema: &Schema,
    source: &str,
    has_optional_old: bool,
    result: Wanted,
) -> Option<String> {
    let this = Kind::of(schema, "selfType0");
    let old = match has_optional_old {
        true => Kind::Optional(Box::new(this.clone())),
        false => this.clone(),
    };
    let variables = [("self", this), ("oldSelf", old)];
    let variables = variables.map(|(name, kind)| (name.to_owned(), kind)).into();
    match diagnose(source, variables, false) {
        Err(problems) => Some(problems),
        Ok(found) => mismatch(&found, result).map(|wanted| format!("must evaluate to a {wanted}")),
    }
}

/// The error of upstream's compiler about an expression of an admission policy or a webhook, which
/// sees only `names` and the variables of its policy, if any.
pub fn condition_problem(
    source: &str,
    names: &[&str],
    variables: Option<&[&str]>,
    result: Wanted,
) -> Option<String> {
    let shared = variables.map(|names| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        ("variables".to_owned(), Kind::Variables(names))
    });
    let names = names.iter().map(|name| ((*name).to_owned(), Kind::Anything));
    let variables = names.chain(shared).collect();
    let is_mutation = matches!(result, Wanted::Object | Wanted::JsonPatch);
    match diagnose(source, variables, is_mutation) {
        Err(problems) => Some(format!("compilation failed: {problems}")),
        Ok(found) => mismatch(&found, result)
            .map(|wanted| format!("must evaluate to {wanted} but got {}", found.type_name())),
    }
}

/// The warning of upstream's type checker about a policy's expression for objects of this schema.
pub fn policy_warning(source: &str, object: &Schema, kind: &str) -> Option<String> {
    let object = Kind::Resource(object, kind.to_owned());
    let open = ["request", "namespaceObject", "params", "variables", "authorizer"];
    let open = open.map(|name| (name.to_owned(), Kind::Anything));
    let typed = ["object", "oldObject"].map(|name| (name.to_owned(), object.clone()));
    diagnose(source, open.into_iter().chain(typed).collect(), false).err()
}

/// The required type, if the actual one differs.
fn mismatch(found: &Kind<'_>, wanted: Wanted) -> Option<&'static str> {
    match wanted {
        Wanted::Boolean => (!found.fits(&Kind::Boolean)).then_some("bool"),
        Wanted::Text => (!found.fits(&Kind::Text)).then_some("string"),
        Wanted::TextOrNull => {
            let fits = matches!(found, Kind::Null) || found.fits(&Kind::Text);
            (!fits).then_some("one of [string null_type]")
        }
        Wanted::Object => {
            let wanted = Kind::Constructed(OBJECT.to_owned());
            (!found.fits(&wanted)).then_some("Object")
        }
        Wanted::JsonPatch => {
            let step = Kind::Constructed(JSON_PATCH.to_owned());
            (!found.fits(&Kind::List(Box::new(step)))).then_some("list(JSONPatch)")
        }
        Wanted::Anything => None,
    }
}

/// The type of an expression, or its problems.
///
/// Only mutations can construct objects.
fn diagnose<'a>(
    source: &'a str,
    variables: HashMap<String, Kind<'a>>,
    is_mutation: bool,
) -> Result<Kind<'a>, String> {
    let expression = parse_unexpanded(source).map_err(|errors| {
        let located = errors.errors.iter().map(|error| {
            let column = usize::try_from(error.pos.1).unwrap_or(1).max(1);
            let line = usize::try_from(error.pos.0).unwrap_or(1).max(1);
            tokens::located(source, line, column, &error.msg)
        });
        located.collect::<Vec<_>>().join("\n")
    })?;
    let cursor = Cursor::new(source);
    let mut checker = Checker { cursor, variables, is_mutation, problems: Vec::new() };
    let (found, _) = checker.infer(&expression);
    if checker.problems.is_empty() {
        return Ok(found);
    }
    checker.problems.sort();
    let located = checker.problems.iter().map(|(at, words)| tokens::at(source, *at, words));
    Err(located.collect::<Vec<_>>().join("\n"))
}

struct Checker<'a> {
    cursor: Cursor<'a>,
    variables: HashMap<String, Kind<'a>>,
    is_mutation: bool,
    /// The position and the text of each problem.
    problems: Vec<(usize, String)>,
}

impl<'a> Checker<'a> {
    fn complain(&mut self, at: usize, words: String) -> Kind<'a> {
        self.problems.push((at, words));
        Kind::Anything
    }

    /// The type of an expression and the position that upstream reports for it.
    fn infer(&mut self, expression: &IdedExpr) -> (Kind<'a>, usize) {
        match &expression.expr {
            Expr::Literal(literal) => (Kind::of_literal(literal), self.cursor.literal()),
            Expr::Ident(name) => self.identifier(name),
            Expr::Select(select) => self.select(select),
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::List(list) => {
                let at = self.cursor.find("[");
                let kind = self.same_kind(list.elements.iter());
                (Kind::List(Box::new(kind)), at)
            }
            Expr::Map(map) => {
                let at = self.cursor.find("{");
                let entries = map.entries.iter().filter_map(|entry| match &entry.expr {
                    EntryExpr::MapEntry(entry) => Some(entry),
                    EntryExpr::StructField(_) => None,
                });
                let (mut keys, mut values) = (Kind::Anything, Kind::Anything);
                for entry in entries {
                    keys = self.infer(&entry.key).0;
                    values = self.infer(&entry.value).0;
                }
                (Kind::Map(Box::new(keys), Box::new(values)), at)
            }
            Expr::Struct(literal) => self.literal(literal),
            _ => (Kind::Anything, self.cursor.position()),
        }
    }

    /// A literal with a type.
    fn literal(&mut self, literal: &StructExpr) -> (Kind<'a>, usize) {
        let name = &literal.type_name;
        let at = self.cursor.find(name.split('.').next().unwrap_or(name));
        if !self.is_mutation || !is_type(name) {
            let words = format!("undeclared reference to '{name}' (in container '')");
            return (self.complain(at, words), at);
        }
        self.cursor.find("{");
        for entry in &literal.entries {
            let EntryExpr::StructField(field) = &entry.expr else { continue };
            let field_at = self.cursor.find(&field.field);
            if name == JSON_PATCH && !JSON_PATCH_FIELDS.contains(&field.field.as_str()) {
                self.complain(field_at, format!("undefined field '{}'", field.field));
            }
            self.infer(&field.value);
        }
        (Kind::Constructed(name.clone()), at)
    }

    /// The one type of the elements of a list literal.
    fn same_kind<'e>(&mut self, elements: impl Iterator<Item = &'e IdedExpr>) -> Kind<'a> {
        let mut common: Option<Kind<'a>> = None;
        for element in elements {
            let (kind, at) = self.infer(element);
            match &common {
                None => common = Some(kind),
                Some(common) if common.fits(&kind) => {}
                Some(common) => {
                    let words = format!("expected type '{common}' but found '{kind}'");
                    self.complain(at, words);
                }
            }
        }
        common.unwrap_or(Kind::Anything)
    }

    fn identifier(&mut self, name: &str) -> (Kind<'a>, usize) {
        if name.starts_with(['@', '#', '_']) {
            // Generated by macros, so not in the source.
            let kind = self.variables.get(name).cloned().unwrap_or(Kind::Anything);
            return (kind, self.cursor.position());
        }
        let at = self.cursor.find(name);
        if let Some(kind) = self.variables.get(name) {
            return (kind.clone(), at);
        }
        if functions::TYPES.contains(&name) {
            return (Kind::Anything, at);
        }
        let words = format!("undeclared reference to '{name}' (in container '')");
        (self.complain(at, words), at)
    }

    fn select(&mut self, select: &SelectExpr) -> (Kind<'a>, usize) {
        let test_at = select.test.then(|| self.cursor.find_after("has", "("));
        let (operand, _) = self.infer(&select.operand);
        let dot = self.cursor.find_before(".", &select.field);
        let at = test_at.unwrap_or(dot);
        let field = match operand.field(&select.field) {
            Ok(kind) => kind,
            Err(words) => self.complain(at, words),
        };
        (if select.test { Kind::Boolean } else { field }, at)
    }

    fn call(&mut self, call: &CallExpr) -> (Kind<'a>, usize) {
        let name = call.func_name.as_str();
        if call.args.iter().any(is_accumulator) {
            return self.macro_step(call);
        }
        if let Some(symbol) = functions::infix(name)
            && let [left, right] = call.args.as_slice()
        {
            let left = self.infer(left);
            let at = self.cursor.find(symbol);
            let right = self.infer(right);
            return (self.operator(name, at, left, right), at);
        }
        match (name, call.args.as_slice()) {
            (operators::LOGICAL_NOT | operators::NEGATE, [operand]) => {
                let at = self.cursor.find(if name == operators::NEGATE { "-" } else { "!" });
                let (kind, _) = self.infer(operand);
                let fits = match name {
                    operators::LOGICAL_NOT => kind.fits(&Kind::Boolean),
                    _ => kind.fits(&Kind::Integer) || kind.fits(&Kind::Double),
                };
                let kind = match fits {
                    true if name == operators::LOGICAL_NOT => Kind::Boolean,
                    true => kind,
                    false => self.complain(at, functions::no_overload(name, None, &[kind])),
                };
                (kind, at)
            }
            (operators::CONDITIONAL, [condition, yes, no]) => self.conditional(condition, yes, no),
            (operators::INDEX | operators::OPT_INDEX, [container, index]) => {
                let (container, _) = self.infer(container);
                let at = self.cursor.find("[");
                let (index, _) = self.infer(index);
                let element = container.element(&index);
                let element = element.unwrap_or_else(|| {
                    self.complain(at, functions::no_overload(name, None, &[container, index]))
                });
                let is_optional = name == operators::OPT_INDEX;
                (if is_optional { Kind::Optional(Box::new(element)) } else { element }, at)
            }
            (operators::OPT_SELECT, [operand, _]) => {
                self.infer(operand);
                (Kind::Anything, self.cursor.find(".?"))
            }
            _ => self.function(call),
        }
    }

    /// Handles what macros wrap around the expressions of the source; checks only the latter.
    fn macro_step(&mut self, call: &CallExpr) -> (Kind<'a>, usize) {
        let at = self.cursor.position();
        for argument in call.args.iter().filter(|argument| !is_accumulator(argument)) {
            match &argument.expr {
                Expr::List(list) => list.elements.iter().for_each(|element| {
                    self.infer(element);
                }),
                Expr::Call(call) if call.args.iter().any(is_accumulator) => {
                    self.macro_step(call);
                }
                _ => {
                    let (kind, at) = self.infer(argument);
                    let is_condition = matches!(
                        call.func_name.as_str(),
                        operators::LOGICAL_AND | operators::LOGICAL_OR | operators::CONDITIONAL
                    );
                    if is_condition && !kind.fits(&Kind::Boolean) {
                        self.complain(at, format!("expected type 'bool' but found '{kind}'"));
                    }
                }
            }
        }
        (Kind::Anything, at)
    }

    fn conditional(
        &mut self,
        condition: &IdedExpr,
        yes: &IdedExpr,
        no: &IdedExpr,
    ) -> (Kind<'a>, usize) {
        let (condition, _) = self.infer(condition);
        let at = self.cursor.find("?");
        let (yes, _) = self.infer(yes);
        let (no, _) = self.infer(no);
        if condition.fits(&Kind::Boolean) && yes.fits(&no) {
            return (if yes.is_known() { yes } else { no }, at);
        }
        let words = functions::no_overload(operators::CONDITIONAL, None, &[condition, yes, no]);
        (self.complain(at, words), at)
    }

    fn operator(
        &mut self,
        name: &str,
        at: usize,
        (left, left_at): (Kind<'a>, usize),
        (right, right_at): (Kind<'a>, usize),
    ) -> Kind<'a> {
        if matches!(name, operators::LOGICAL_AND | operators::LOGICAL_OR) {
            for (kind, at) in [(left, left_at), (right, right_at)] {
                if !kind.fits(&Kind::Boolean) {
                    let words = format!("expected type 'bool' but found '{kind}'");
                    self.complain(at, words);
                }
            }
            return Kind::Boolean;
        }
        functions::operator(name, &left, &right).unwrap_or_else(|| {
            self.complain(at, functions::no_overload(name, None, &[left, right]))
        })
    }

    fn function(&mut self, call: &CallExpr) -> (Kind<'a>, usize) {
        let name = call.func_name.as_str();
        let qualified =
            call.target.as_deref().and_then(|target| functions::namespace(target, name));
        let target = match (&call.target, &qualified) {
            (Some(target), None) => Some(self.infer(target).0),
            _ => None,
        };
        let at = self.cursor.find_after(name, "(");
        let has_two_variables = functions::COMPREHENSIONS.contains(&name) && call.args.len() == 3;
        if functions::MACROS.contains(&name) || has_two_variables {
            // Macros that were not expanded bind variables of their own.
            return (Kind::Anything, at);
        }
        if let ("matches", [IdedExpr { expr: Expr::Literal(LiteralValue::String(pattern)), .. }]) =
            (name, call.args.as_slice())
            && patterns::judge(pattern.inner()).is_err()
        {
            let at = self.cursor.literal();
            return (self.complain(at, "invalid matches argument".to_owned()), at);
        }
        if let ("format", [IdedExpr { expr: Expr::List(list), .. }]) = (name, call.args.as_slice())
        {
            // The only list whose elements may differ.
            self.cursor.find("[");
            list.elements.iter().for_each(|element| {
                self.infer(element);
            });
            return (Kind::Text, at);
        }
        let arguments: Vec<Kind<'a>> =
            call.args.iter().map(|argument| self.infer(argument).0).collect();
        let full_name = qualified.as_deref().unwrap_or(name);
        if !functions::is_known(full_name) {
            let words = format!("undeclared reference to '{name}' (in container '')");
            return (self.complain(at, words), at);
        }
        let kind = match functions::result(full_name, target.as_ref(), &arguments) {
            Some(kind) => kind,
            None => {
                let words = functions::no_overload(full_name, target.as_ref(), &arguments);
                self.complain(at, words)
            }
        };
        (kind, at)
    }

    fn comprehension(&mut self, comprehension: &ComprehensionExpr) -> (Kind<'a>, usize) {
        let (range, at) = self.infer(&comprehension.iter_range);
        let is_text = |kind: &Kind<'_>| matches!(kind, Kind::Boolean);
        // The initial accumulator is not in the source; its type identifies the macro.
        let start = match &comprehension.accu_init.expr {
            Expr::Literal(literal) => Kind::of_literal(literal),
            _ => Kind::Anything,
        };
        let item = range.item();
        if !comprehension.iter_var.starts_with(['@', '#', '_']) {
            self.cursor.find(&comprehension.iter_var);
        }
        let previous = self.variables.insert(comprehension.iter_var.clone(), item);
        self.infer(&comprehension.loop_step);
        match previous {
            Some(kind) => self.variables.insert(comprehension.iter_var.clone(), kind),
            None => self.variables.remove(&comprehension.iter_var),
        };
        // `exists_one` counts and compares; only `all` and `exists` start with a boolean.
        let kind = match start {
            start if is_text(&start) => Kind::Boolean,
            Kind::Integer => Kind::Boolean,
            _ => Kind::List(Box::new(Kind::Anything)),
        };
        (kind, at)
    }
}

/// Whether an expression is the accumulator of a macro, which does not occur in the source.
fn is_accumulator(expression: &IdedExpr) -> bool {
    matches!(&expression.expr, Expr::Ident(name) if name.starts_with(['@', '#', '_']))
}

/// Whether rules refer to a property by this name.
fn is_called(property: &str, name: &str) -> bool {
    property == name || escape(property) == name
}
