//! The functions and operators of upstream's environment.
//!
//! A 1.33 server accepts only what 1.32 understands, so that it can be rolled back.

use kube_cel::cel::common::ast::{Expr, IdedExpr, operators};

use super::kinds::Kind;

/// Names that are types.
pub(super) const TYPES: [&str; 13] = [
    "bool",
    "bytes",
    "double",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "type",
    "uint",
    "optional_type",
    "google",
    "dyn",
];

/// Macros that the parser leaves as calls, since it does not know them.
pub(super) const MACROS: [&str; 6] =
    ["optMap", "optFlatMap", "transformList", "transformMap", "transformMapEntry", "existsOne"];

/// Two-variable forms of known macros also stay calls.
pub(super) const COMPREHENSIONS: [&str; 3] = ["all", "exists", "exists_one"];

const FUNCTIONS: [&str; 99] = [
    "path",
    "serviceAccount",
    "group",
    "resource",
    "subresource",
    "namespace",
    "name",
    "check",
    "allowed",
    "errored",
    "error",
    "reason",
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "timestamp",
    "duration",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getFullYear",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getSeconds",
    "bool",
    "bytes",
    "double",
    "dyn",
    "int",
    "string",
    "type",
    "uint",
    "charAt",
    "indexOf",
    "lastIndexOf",
    "lowerAscii",
    "upperAscii",
    "replace",
    "split",
    "join",
    "substring",
    "trim",
    "format",
    "strings.quote",
    "sets.contains",
    "sets.equivalent",
    "sets.intersects",
    "isSorted",
    "sum",
    "min",
    "max",
    "find",
    "findAll",
    "url",
    "isURL",
    "getScheme",
    "getHost",
    "getHostname",
    "getPort",
    "getEscapedPath",
    "getQuery",
    "quantity",
    "isQuantity",
    "sign",
    "isInteger",
    "asInteger",
    "asApproximateFloat",
    "add",
    "sub",
    "isLessThan",
    "isGreaterThan",
    "compareTo",
    "ip",
    "isIP",
    "ip.isCanonical",
    "family",
    "isUnspecified",
    "isLoopback",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isGlobalUnicast",
    "cidr",
    "isCIDR",
    "containsIP",
    "containsCIDR",
    "masked",
    "prefixLength",
    "format.named",
    "jsonpatch.escapeKey",
    "validate",
    "or",
    "orValue",
    "value",
    "hasValue",
];

/// Whether a function exists, regardless of its arguments.
pub(super) fn is_known(name: &str) -> bool {
    FUNCTIONS.contains(&name)
        || COMPREHENSIONS.contains(&name)
        || name.starts_with('@')
        || name.starts_with("optional.")
        || name.starts_with("format.")
}

/// The full name of a function whose target is a namespace: `sets.contains`.
pub(super) fn namespace(target: &IdedExpr, name: &str) -> Option<String> {
    let Expr::Ident(namespace) = &target.expr else { return None };
    let full = format!("{namespace}.{name}");
    is_known(&full).then_some(full)
}

/// How an infix operator is written; `None` for other operators.
pub(super) fn infix(name: &str) -> Option<&'static str> {
    Some(match name {
        operators::LOGICAL_AND => "&&",
        operators::LOGICAL_OR => "||",
        operators::ADD => "+",
        operators::SUBSTRACT => "-",
        operators::MULTIPLY => "*",
        operators::DIVIDE => "/",
        operators::MODULO => "%",
        operators::EQUALS => "==",
        operators::NOT_EQUALS => "!=",
        operators::GREATER_EQUALS => ">=",
        operators::LESS_EQUALS => "<=",
        operators::GREATER => ">",
        operators::LESS => "<",
        operators::IN => "in",
        _ => return None,
    })
}

/// The result type of an operator; `None` if it does not accept these operands.
pub(super) fn operator<'a>(name: &str, left: &Kind<'a>, right: &Kind<'a>) -> Option<Kind<'a>> {
    let is_open = !left.is_known() || !right.is_known();
    match name {
        operators::EQUALS | operators::NOT_EQUALS => left.fits(right).then_some(Kind::Boolean),
        operators::LESS
        | operators::LESS_EQUALS
        | operators::GREATER
        | operators::GREATER_EQUALS => {
            let numbers = left.is_number() && right.is_number();
            let scalars = left.fits(right)
                && matches!(
                    left,
                    Kind::Text | Kind::Bytes | Kind::Boolean | Kind::Timestamp | Kind::Duration
                );
            (is_open || numbers || scalars).then_some(Kind::Boolean)
        }
        operators::IN => match right {
            Kind::List(item) => left.fits(item).then_some(Kind::Boolean),
            Kind::Map(keys, _) => left.fits(keys).then_some(Kind::Boolean),
            Kind::Anything => Some(Kind::Boolean),
            _ => None,
        },
        _ if is_open => Some(Kind::Anything),
        _ => arithmetic(name, left, right),
    }
}

fn arithmetic<'a>(name: &str, left: &Kind<'a>, right: &Kind<'a>) -> Option<Kind<'a>> {
    let same = left.fits(right);
    match (name, left, right) {
        (operators::MODULO, Kind::Double, _) => None,
        (_, left, _) if left.is_number() && same => Some(left.clone()),
        (operators::ADD, Kind::Text | Kind::Bytes | Kind::List(_) | Kind::Duration, _) if same => {
            Some(left.clone())
        }
        (operators::ADD, Kind::Timestamp, Kind::Duration)
        | (operators::ADD, Kind::Duration, Kind::Timestamp)
        | (operators::SUBSTRACT, Kind::Timestamp, Kind::Duration) => Some(Kind::Timestamp),
        (operators::SUBSTRACT, Kind::Timestamp, Kind::Timestamp)
        | (operators::SUBSTRACT, Kind::Duration, Kind::Duration) => Some(Kind::Duration),
        _ => None,
    }
}

/// The result type of a function; `None` if it does not accept these arguments.
pub(super) fn result<'a>(
    name: &str,
    target: Option<&Kind<'a>>,
    arguments: &[Kind<'a>],
) -> Option<Kind<'a>> {
    match (name, target, arguments) {
        ("startsWith" | "endsWith" | "contains" | "matches", Some(target), [argument]) => {
            let fits = target.fits(&Kind::Text) && argument.fits(&Kind::Text);
            fits.then_some(Kind::Boolean)
        }
        ("size", Some(value), []) | ("size", None, [value]) => {
            let sized = matches!(
                value,
                Kind::Anything | Kind::Text | Kind::Bytes | Kind::List(_) | Kind::Map(..)
            );
            sized.then_some(Kind::Integer)
        }
        ("lowerAscii" | "upperAscii" | "trim", Some(target), []) => {
            target.fits(&Kind::Text).then_some(Kind::Text)
        }
        ("timestamp", None, _) => Some(Kind::Timestamp),
        ("duration", None, _) => Some(Kind::Duration),
        ("int", None, _) => Some(Kind::Integer),
        ("double", None, _) => Some(Kind::Double),
        ("string", None, _) | ("join" | "replace" | "substring" | "charAt", Some(_), _) => {
            Some(Kind::Text)
        }
        ("isQuantity" | "isURL" | "isIP" | "isCIDR" | "isSorted" | "hasValue", ..) => {
            Some(Kind::Boolean)
        }
        _ => Some(Kind::Anything),
    }
}

/// Upstream's message for operands or arguments that do not fit.
pub(super) fn no_overload(name: &str, target: Option<&Kind<'_>>, arguments: &[Kind<'_>]) -> String {
    let kinds: Vec<String> = arguments.iter().map(Kind::to_string).collect();
    let target = target.map(|target| format!("{target}.")).unwrap_or_default();
    let kinds = kinds.join(", ");
    format!("found no matching overload for '{name}' applied to '{target}({kinds})'")
}
