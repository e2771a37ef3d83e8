//! Typed literals: `Object{...}` and `JSONPatch{...}` in the mutations of admission policies.
//!
//! The `cel` crate parses them but cannot evaluate them, so they become maps. No other expressions
//! can construct typed values.

use kube_cel::cel::common::ast::{
    EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue, MapEntryExpr, MapExpr, StructExpr,
};

/// The result type of an `ApplyConfiguration`.
pub(super) const OBJECT: &str = "Object";
/// The type of the operations in a `JSONPatch`.
pub(super) const JSON_PATCH: &str = "JSONPatch";
/// The fields of an operation.
pub(super) const JSON_PATCH_FIELDS: [&str; 4] = ["op", "path", "from", "value"];

/// Whether mutations can construct values of a type.
pub(super) fn is_type(name: &str) -> bool {
    name == OBJECT || name == JSON_PATCH || name.starts_with("Object.")
}

/// The name of the first type that an expression constructs.
pub(super) fn first_type(expression: &IdedExpr) -> Option<&str> {
    if let Expr::Struct(literal) = &expression.expr {
        return Some(&literal.type_name);
    }
    parts(expression).into_iter().find_map(first_type)
}

/// The direct subexpressions of an expression.
pub(super) fn parts(expression: &IdedExpr) -> Vec<&IdedExpr> {
    match &expression.expr {
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => entries(&map.entries),
        Expr::Struct(literal) => entries(&literal.entries),
        Expr::Comprehension(comprehension) => vec![
            &comprehension.iter_range,
            &comprehension.accu_init,
            &comprehension.loop_cond,
            &comprehension.loop_step,
            &comprehension.result,
        ],
        _ => Vec::new(),
    }
}

fn entries(entries: &[IdedEntryExpr]) -> Vec<&IdedExpr> {
    let parts = entries.iter().flat_map(|entry| match &entry.expr {
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
        EntryExpr::StructField(field) => vec![&field.value],
    });
    parts.collect()
}

/// The direct subexpressions, mutable.
pub(super) fn parts_mut(expression: &mut IdedExpr) -> Vec<&mut IdedExpr> {
    match &mut expression.expr {
        Expr::Call(call) => call.target.as_deref_mut().into_iter().chain(&mut call.args).collect(),
        Expr::Select(select) => vec![&mut select.operand],
        Expr::List(list) => list.elements.iter_mut().collect(),
        Expr::Map(MapExpr { entries }) | Expr::Struct(StructExpr { entries, .. }) => {
            let parts = entries.iter_mut().flat_map(|entry| match &mut entry.expr {
                EntryExpr::MapEntry(entry) => vec![&mut entry.key, &mut entry.value],
                EntryExpr::StructField(field) => vec![&mut field.value],
            });
            parts.collect()
        }
        Expr::Comprehension(comprehension) => vec![
            &mut comprehension.iter_range,
            &mut comprehension.accu_init,
            &mut comprehension.loop_cond,
            &mut comprehension.loop_step,
            &mut comprehension.result,
        ],
        _ => Vec::new(),
    }
}

/// Turns all typed literals into maps; the error names a type that does not fit its place.
pub(super) fn lower(expression: &mut IdedExpr) -> Result<(), String> {
    if let Expr::Struct(literal) = &expression.expr {
        check_places(literal)?;
    }
    for part in parts_mut(expression) {
        lower(part)?;
    }
    if let Expr::Struct(literal) = &mut expression.expr {
        let entries = std::mem::take(&mut literal.entries);
        let entries = entries.into_iter().map(keyed).collect();
        expression.expr = Expr::Map(MapExpr { entries });
    }
    Ok(())
}

fn keyed(entry: IdedEntryExpr) -> IdedEntryExpr {
    let IdedEntryExpr { id, expr } = entry;
    let expr = match expr {
        EntryExpr::StructField(field) => {
            let key = Expr::Literal(LiteralValue::String(field.field.as_str().into()));
            let key = IdedExpr { id, expr: key };
            let (value, optional) = (field.value, field.optional);
            EntryExpr::MapEntry(MapEntryExpr { key, value, optional })
        }
        entry => entry,
    };
    IdedEntryExpr { id, expr }
}

/// The type of a part is named after its place: `Object.spec` in the field `spec` of an `Object`.
fn check_places(literal: &StructExpr) -> Result<(), String> {
    if literal.type_name == JSON_PATCH {
        return Ok(());
    }
    for entry in &literal.entries {
        let EntryExpr::StructField(field) = &entry.expr else { continue };
        let expected = format!("{}.{}", literal.type_name, field.field);
        let found: Vec<&IdedExpr> = match &field.value.expr {
            Expr::List(list) => list.elements.iter().collect(),
            _ => vec![&field.value],
        };
        for part in found {
            if let Expr::Struct(part) = &part.expr
                && part.type_name != expected
            {
                return Err(format!(
                    "type mismatch: unexpected type name {:?}, expected {expected:?}, which \
                     matches field name path from root Object type",
                    part.type_name
                ));
            }
        }
    }
    Ok(())
}
