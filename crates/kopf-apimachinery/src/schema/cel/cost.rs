//! Estimates the maximum cost of a rule before it is run, as upstream does.
//!
//! The unit is roughly one step. The sizes of values come from the limits in the schema, or from
//! the maximum size of a request. Where upstream has no estimate for a size, such as that of a
//! number as text, this assumes a small one, so that no valid rule is rejected.

use std::collections::HashMap;

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators,
};

use super::convert::escape;
use super::program::parse_unexpanded;
use crate::schema::ir::{Schema, Type};

/// The maximum size of an object that upstream assumes.
const REQUEST_BYTES_MAX: f64 = 3.0 * 1024.0 * 1024.0;
/// The cost of reading a string, per character.
const TEXT_FACTOR: f64 = 0.1;
/// The number of expressions in a pattern, per character.
const PATTERN_FACTOR: f64 = 0.25;
const LIST_COST: f64 = 10.0;
const MAP_COST: f64 = 30.0;
/// The maximum size of a value of unknown type.
const UNKNOWN_SIZE: f64 = u64::MAX as f64;
/// The cost of one authorization check.
const CHECK_COST: f64 = 350_000.0;

/// The maximum number of values of a schema in one object.
pub fn count_max(schema: &Schema) -> f64 {
    (REQUEST_BYTES_MAX / (size_min(schema, 0) + 1.0)).floor()
}

/// The minimum size of a value of a schema, in bytes.
fn size_min(schema: &Schema, depth: usize) -> f64 {
    match (schema.kind, schema.format.as_deref()) {
        (Some(Type::Object), _) if depth < 8 && schema.values().is_none() => {
            let required = schema.required.iter().filter_map(|name| {
                let property = schema.property(name).filter(|it| it.default.is_none())?;
                Some(name.len() as f64 + 4.0 + size_min(property, depth + 1))
            });
            2.0 + required.sum::<f64>()
        }
        (Some(Type::Boolean), _) => 4.0,
        (Some(Type::Integer | Type::Number), _) => 1.0,
        (Some(Type::String), Some("date")) => 12.0,
        (Some(Type::String), Some("date-time")) => 22.0,
        _ if schema.int_or_string => 1.0,
        _ => 2.0,
    }
}

/// The maximum size of a value of a schema: characters, items or entries.
fn size_max(schema: &Schema) -> f64 {
    let limit = |given: Option<i64>| given.map(|limit| limit.max(0) as f64);
    let is_text = schema.kind == Some(Type::String) || schema.int_or_string;
    match (schema.kind, schema.format.as_deref()) {
        (Some(Type::Array), _) => limit(schema.max_items).unwrap_or_else(|| {
            let least = schema.item().map_or(2.0, |item| size_min(item, 0));
            ((REQUEST_BYTES_MAX - 2.0) / (least + 1.0)).floor()
        }),
        (Some(Type::Object), _) => limit(schema.max_properties).unwrap_or_else(|| {
            let least = schema.values().map_or(2.0, |values| size_min(values, 0));
            ((REQUEST_BYTES_MAX - 2.0) / (least + 6.0)).floor()
        }),
        (_, Some("duration")) => 32.0,
        (_, Some("date")) => 12.0,
        (_, Some("date-time")) => 32.0,
        (_, Some("byte")) => limit(schema.max_length).unwrap_or(REQUEST_BYTES_MAX - 2.0),
        _ if is_text => limit(schema.max_length).map(|limit| limit * 4.0).unwrap_or_else(|| {
            let texts = schema.enumeration.iter().flatten().filter_map(|value| value.as_str());
            let longest = texts.map(str::len).max().map(|length| length as f64);
            longest.unwrap_or(REQUEST_BYTES_MAX - 2.0)
        }),
        _ => 0.0,
    }
}

/// The maximum cost of one evaluation of a rule on a node of this schema.
pub fn estimate(schema: &Schema, rule: &str) -> f64 {
    let Ok(expression) = parse_unexpanded(rule) else { return 0.0 };
    let this = Estimate::of(0.0, schema);
    let names = ["self", "oldSelf"];
    let variables = names.map(|name| (name.to_owned(), this.clone())).into();
    Estimator { variables }.estimate(&expression).cost
}

/// What is known about an expression.
#[derive(Clone, Default)]
struct Estimate<'s> {
    /// The maximum cost of evaluating it.
    cost: f64,
    /// The maximum size of its value.
    size: f64,
    /// The maximum size of the items of its value.
    item_size: f64,
    is_text: bool,
    is_list: bool,
    /// The type of its value, if the schema declares it.
    schema: Option<&'s Schema>,
}

impl<'s> Estimate<'s> {
    fn of(cost: f64, schema: &'s Schema) -> Self {
        Self {
            cost,
            size: size_max(schema),
            item_size: schema.item().map_or(0.0, size_max),
            is_text: schema.kind == Some(Type::String),
            is_list: schema.kind == Some(Type::Array),
            schema: Some(schema),
        }
    }

    /// A value of which only the cost is known.
    fn plain(cost: f64) -> Self {
        Self { cost, ..Self::default() }
    }

    fn text(cost: f64, size: f64) -> Self {
        Self { cost, size, is_text: true, ..Self::default() }
    }

    /// The value of the loop variable in a loop over this value.
    fn element(&self) -> Self {
        match self.schema {
            Some(schema) => match schema.item() {
                Some(item) => Self::of(0.0, item),
                // Keys of maps.
                None => Self { is_text: true, ..Self::default() },
            },
            None => Self { size: self.item_size, is_text: self.item_size > 0.0, ..Self::default() },
        }
    }
}

fn traversal(size: f64) -> f64 {
    (size * TEXT_FACTOR).ceil()
}

struct Estimator<'s> {
    variables: HashMap<String, Estimate<'s>>,
}

impl<'s> Estimator<'s> {
    fn estimate(&mut self, expression: &IdedExpr) -> Estimate<'s> {
        match &expression.expr {
            Expr::Literal(literal) => of_literal(literal),
            Expr::Ident(name) => {
                let known = self.variables.get(name).cloned().unwrap_or_default();
                Estimate { cost: 1.0, ..known }
            }
            Expr::Select(select) => {
                let operand = self.estimate(&select.operand);
                if select.test {
                    return Estimate::plain(operand.cost);
                }
                match operand.schema.and_then(|schema| field(schema, &select.field)) {
                    Some(field) => Estimate::of(operand.cost + 1.0, field),
                    None => Estimate::plain(operand.cost + 1.0),
                }
            }
            Expr::List(list) => {
                let items: Vec<_> = list.elements.iter().map(|item| self.estimate(item)).collect();
                Estimate {
                    cost: LIST_COST + items.iter().map(|item| item.cost).sum::<f64>(),
                    size: items.len() as f64,
                    item_size: items.iter().map(|item| item.size).fold(0.0, f64::max),
                    is_list: true,
                    ..Estimate::default()
                }
            }
            Expr::Map(map) => {
                let entries = map.entries.iter().filter_map(|entry| match &entry.expr {
                    EntryExpr::MapEntry(entry) => Some([&entry.key, &entry.value]),
                    EntryExpr::StructField(_) => None,
                });
                let cost: f64 = entries.flatten().map(|part| self.estimate(part).cost).sum();
                Estimate { size: map.entries.len() as f64, ..Estimate::plain(MAP_COST + cost) }
            }
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Call(call) => self.call(call),
            _ => Estimate::default(),
        }
    }

    /// Estimates something in which a name has another meaning.
    fn with<T>(&mut self, name: &str, value: Estimate<'s>, run: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.variables.insert(name.to_owned(), value);
        let outcome = run(self);
        match before {
            Some(before) => self.variables.insert(name.to_owned(), before),
            None => self.variables.remove(name),
        };
        outcome
    }

    fn comprehension(&mut self, comprehension: &ComprehensionExpr) -> Estimate<'s> {
        let range = self.estimate(&comprehension.iter_range);
        let start = self.estimate(&comprehension.accu_init);
        let accumulator = Estimate { cost: 1.0, ..start.clone() };
        let (turn, step, result) = self.with(&comprehension.accu_var, accumulator, |this| {
            let (turn, step) = this.with(&comprehension.iter_var, range.element(), |this| {
                let condition = this.estimate(&comprehension.loop_cond);
                let step = this.estimate(&comprehension.loop_step);
                (condition.cost + step.cost, step)
            });
            let result = this.estimate(&comprehension.result);
            (turn, step, result)
        });
        let cost = range.cost + start.cost + result.cost + range.size * turn;
        match start.is_list {
            true => Estimate {
                cost,
                size: range.size,
                item_size: step.item_size,
                is_list: true,
                ..Estimate::default()
            },
            false => Estimate { cost, ..start },
        }
    }

    fn call(&mut self, call: &CallExpr) -> Estimate<'s> {
        let name = call.func_name.as_str();
        if let Some(special) = self.special(call) {
            return special;
        }
        let target = call.target.as_deref().map(|target| self.estimate(target));
        let arguments: Vec<_> = call.args.iter().map(|part| self.estimate(part)).collect();
        let sum: f64 = target.iter().chain(&arguments).map(|part| part.cost).sum();
        match (name, arguments.as_slice()) {
            (operators::LOGICAL_AND | operators::LOGICAL_OR, _) => Estimate::plain(sum),
            (operators::CONDITIONAL, [condition, yes, no]) => Estimate {
                cost: condition.cost + yes.cost.max(no.cost),
                size: yes.size.max(no.size),
                item_size: yes.item_size.max(no.item_size),
                ..yes.clone()
            },
            (operators::ADD, [left, right]) => add(sum, left, right),
            (operators::EQUALS | operators::NOT_EQUALS, [left, right]) => {
                Estimate::plain(sum + traversal(left.size.min(right.size)))
            }
            (
                operators::LESS
                | operators::LESS_EQUALS
                | operators::GREATER
                | operators::GREATER_EQUALS,
                [left, right],
            ) if left.is_text || right.is_text => {
                Estimate::plain(sum + traversal(left.size.min(right.size)))
            }
            (operators::IN, [_, container]) => {
                Estimate::plain(sum + if container.is_list { container.size } else { 1.0 })
            }
            (operators::INDEX, [container, _]) => {
                let schema = container.schema;
                let element = schema.and_then(|schema| schema.item().or_else(|| schema.values()));
                match element {
                    Some(element) => Estimate::of(sum + 1.0, element),
                    None => Estimate { size: container.item_size, ..Estimate::plain(sum + 1.0) },
                }
            }
            _ => function(name, sum, target.as_ref(), &arguments),
        }
    }

    /// Macros that the parser leaves as calls, and calls that only look like macros.
    fn special(&mut self, call: &CallExpr) -> Option<Estimate<'s>> {
        let name = call.func_name.as_str();
        let target = call.target.as_deref()?;
        match (name, call.args.as_slice()) {
            ("bind", [variable, value, result]) => {
                let is_cel = matches!(&target.expr, Expr::Ident(name) if name == "cel");
                let Expr::Ident(variable) = &variable.expr else { return None };
                let value = self.estimate(value).clone();
                let cost = LIST_COST + value.cost;
                let result = self.with(variable, value, |this| this.estimate(result));
                is_cel.then_some(Estimate { cost: cost + result.cost, ..result })
            }
            ("all" | "exists" | "exists_one" | "existsOne", [first, second, predicate]) => {
                /// The cost of the logic around a predicate.
                const AROUND: f64 = 3.0;
                let (Expr::Ident(first), Expr::Ident(second)) = (&first.expr, &second.expr) else {
                    return None;
                };
                let range = self.estimate(target);
                let value = match range.schema.and_then(Schema::values) {
                    Some(values) => Estimate::of(0.0, values),
                    None => range.element(),
                };
                let inner = self.with(first, Estimate::default(), |this| {
                    this.with(second, value, |this| this.estimate(predicate).cost)
                });
                Some(Estimate::plain(range.cost + range.size * (inner + AROUND)))
            }
            _ => None,
        }
    }
}

fn of_literal<'s>(literal: &LiteralValue) -> Estimate<'s> {
    match literal {
        LiteralValue::String(text) => Estimate::text(0.0, text.inner().chars().count() as f64),
        LiteralValue::Bytes(bytes) => Estimate::text(0.0, bytes.inner().len() as f64),
        _ => Estimate { size: 1.0, ..Estimate::default() },
    }
}

fn field<'s>(schema: &'s Schema, name: &str) -> Option<&'s Schema> {
    let declared = schema.properties.iter().find(|(key, _)| *key == name || escape(key) == name);
    declared.map(|(_, property)| &**property).or_else(|| schema.values())
}

fn add<'s>(sum: f64, left: &Estimate<'s>, right: &Estimate<'s>) -> Estimate<'s> {
    let size = left.size + right.size;
    if left.is_list || right.is_list {
        let item_size = left.item_size.max(right.item_size);
        return Estimate { size, item_size, is_list: true, ..Estimate::plain(sum + 1.0) };
    }
    match left.is_text || right.is_text {
        true => Estimate::text(sum + traversal(size), size),
        false => Estimate { size: 1.0, ..Estimate::plain(sum + 1.0) },
    }
}

/// The maximum size of the items of a list; unknown unless the schema declares the list.
fn item_size(list: Option<&Estimate<'_>>) -> f64 {
    list.map_or(0.0, |list| list.schema.map_or(UNKNOWN_SIZE, |_| list.item_size))
}

/// The cost of a function without its arguments.
fn function<'s>(
    name: &str,
    sum: f64,
    target: Option<&Estimate<'s>>,
    arguments: &[Estimate<'s>],
) -> Estimate<'s> {
    let subject = target.map_or(0.0, |target| target.size);
    let size_of = |index: usize| arguments.get(index).map_or(0.0, |argument| argument.size);
    let is_list = target.is_some_and(|target| target.is_list);
    match name {
        "startsWith" | "endsWith" => Estimate::plain(sum + traversal(size_of(0))),
        "contains" => Estimate::plain(sum + traversal(subject) * traversal(size_of(0))),
        "matches" | "find" | "findAll" => {
            let pattern = (size_of(0) * PATTERN_FACTOR).ceil();
            let cost = sum + traversal(subject + 1.0) * pattern;
            Estimate { size: subject, is_list: name == "findAll", ..Estimate::plain(cost) }
        }
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" if is_list => {
            let has_texts = target.is_some_and(|target| target.element().is_text);
            let each = if has_texts { 1.0 + traversal(item_size(target)) } else { 1.0 };
            Estimate::plain(sum + subject * each)
        }
        "indexOf" | "lastIndexOf" | "format" => Estimate::plain(sum + traversal(subject)),
        "url" => Estimate::plain(sum + traversal(size_of(0))),
        "lowerAscii" | "upperAscii" | "substring" | "trim" => {
            Estimate::text(sum + traversal(subject), subject)
        }
        "replace" => {
            let (old, new) = (size_of(0), size_of(1));
            let size = match old {
                old if old < 1.0 => (subject + 1.0) * new + subject,
                old if new <= old => subject,
                old => (subject / old).ceil() * new,
            };
            Estimate::text(sum + traversal(subject * 2.0), size)
        }
        "split" => {
            let cost = sum + traversal(subject * 2.0);
            Estimate { size: subject, is_list: true, ..Estimate::plain(cost) }
        }
        "join" => {
            let size = subject * item_size(target) + size_of(0) * (subject - 1.0).max(0.0);
            Estimate::text(sum + traversal(size), size)
        }
        "dyn" => Estimate { cost: sum + 1.0, ..arguments.first().cloned().unwrap_or_default() },
        "check" => Estimate::plain(sum + CHECK_COST),
        _ => Estimate { size: 1.0, ..Estimate::plain(sum + 1.0) },
    }
}

/// The schemas of variables, as far as they are known.
pub(super) type Variables<'schema> = HashMap<String, &'schema Schema>;

/// The schema of an expression that consists only of selections.
pub(super) fn resolve<'schema>(
    expression: &IdedExpr,
    variables: &Variables<'schema>,
) -> Option<&'schema Schema> {
    match &expression.expr {
        Expr::Ident(name) => variables.get(name).copied(),
        Expr::Select(select) => {
            let operand = resolve(&select.operand, variables)?;
            let declared = operand.properties.iter().find(|(name, _)| escape(name) == select.field);
            declared.map(|(_, property)| &**property).or_else(|| operand.values())
        }
        Expr::Call(call) if call.func_name == operators::INDEX => {
            let container = resolve(call.args.first()?, variables)?;
            container.item().or_else(|| container.values())
        }
        _ => None,
    }
}
