//! Rules, their words and what is known at compile time.

use serde_json::{Value, json};

use super::*;
use crate::schema::{compile, validate};

fn schema(rules: Value) -> Schema {
    compile::custom(&json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "x-kubernetes-validations": rules,
        "properties": {
            "n": {"type": "integer"},
            "s": {"type": "string"},
            "list": {"type": "array", "items": {"type": "string"}},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
            "items": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"], "items": {
                    "type": "object",
                    "x-kubernetes-validations": [{"rule": "self.v == oldSelf.v", "message": "v is fixed"}],
                    "properties": {"name": {"type": "string"}, "v": {"type": "integer"}}}},
            "when": {"type": "string", "format": "date-time"},
            "x-y": {"type": "string"}
        }
    }}}))
}

fn texts(schema: &Schema, spec: Value, old: Option<Value>) -> Vec<String> {
    let old = old.map(|spec| json!({"spec": spec}));
    let verdict = validate(schema, &json!({"spec": spec}), old.as_ref());
    let errors = verdict.errors.iter().map(FieldError::full_message);
    errors.chain(verdict.warnings.iter().map(|warning| format!("warning: {warning}"))).collect()
}

fn check_rule(rule: &str, spec: Value, expected: &[&str]) {
    let schema = schema(json!([{"rule": rule}]));
    assert_eq!(texts(&schema, spec, None), expected, "{rule}");
}

#[test]
fn rules_pass_or_fail_with_upstream_words() {
    let failed = "spec: Invalid value: \"object\": failed rule: self.n <= 10";
    check_rule("self.n <= 10", json!({"n": 11}), &[failed]);
    check_rule("self.n <= 10", json!({"n": 10}), &[]);
    check_rule(
        "self.s.startsWith(\"x\")",
        json!({"n": 1}),
        &[
            "spec: Invalid value: \"object\": no such key: s evaluating rule: self.s.startsWith(\"x\")",
        ],
    );
    check_rule(
        "self.list.all(x, x.size() < 3) && 'a' in self.map",
        json!({"list": ["ab"], "map": {"a": 1}}),
        &[],
    );
    check_rule("!has(self.s) || self.s == 'q'", json!({}), &[]);
    check_rule("self.?s.orValue('none') == 'none'", json!({}), &[]);
    check_rule("cel.bind(m, self.n * 2, m == 6 && m > 5)", json!({"n": 3}), &[]);
    check_rule(
        "self.when < timestamp('2030-01-01T00:00:00Z')",
        json!({"when": "2026-01-01T00:00:00Z"}),
        &[],
    );
    check_rule("self.x__dash__y == 'z'", json!({"x-y": "z"}), &[]);
    check_rule(
        "dyn(self.n) == 3 && quantity('1Gi').isGreaterThan(quantity('1Mi'))",
        json!({"n": 3}),
        &[],
    );
}

#[test]
fn whole_floats_are_not_integers_for_rules() {
    let schema = schema(json!([{"rule": "self.n <= 10", "message": "n too big"}]));
    let expected = "spec: Invalid value: \"object\": invalid data, expected int, got float64 evaluating rule: n too big";
    assert_eq!(texts(&schema, json!({"n": 3.0}), None), [expected]);
}

#[test]
fn messages_reasons_and_paths_are_honoured() {
    let rules = json!([{"rule": "self.s.startsWith('x')", "messageExpression": "\"bad s \" + self.s",
        "reason": "FieldValueForbidden", "fieldPath": ".s"}]);
    assert_eq!(texts(&schema(rules), json!({"s": "y"}), None), ["spec.s: Forbidden: bad s y"]);
}

#[test]
fn transition_rules_need_an_old_value() {
    let schema = schema(json!([{"rule": "self.n >= oldSelf.n", "message": "n shrank"}]));
    assert!(texts(&schema, json!({"n": 1}), None).is_empty());
    let shrank = "spec: Invalid value: \"object\": n shrank";
    assert_eq!(texts(&schema, json!({"n": 1}), Some(json!({"n": 2}))), [shrank]);
    assert!(texts(&schema, json!({"n": 3}), Some(json!({"n": 2}))).is_empty());
}

#[test]
fn items_of_associative_lists_are_compared_with_themselves() {
    let schema = schema(json!([]));
    let old = json!({"items": [{"name": "a", "v": 1}, {"name": "b", "v": 2}]});
    let new =
        json!({"items": [{"name": "b", "v": 3}, {"name": "a", "v": 1}, {"name": "c", "v": 9}]});
    let expected = "spec.items[0]: Invalid value: \"object\": v is fixed";
    assert_eq!(texts(&schema, new, Some(old)), [expected]);
}

#[test]
fn order_means_nothing_in_sets_and_associative_lists() {
    let schema = schema(json!([{"rule": "self == oldSelf", "message": "immutable"}]));
    let old = json!({"items": [{"name": "a", "v": 1}, {"name": "b", "v": 2}], "list": ["x", "y"]});
    let reordered =
        json!({"items": [{"name": "b", "v": 2}, {"name": "a", "v": 1}], "list": ["x", "y"]});
    assert!(texts(&schema, reordered, Some(old.clone())).is_empty());
    let atomic =
        json!({"items": [{"name": "a", "v": 1}, {"name": "b", "v": 2}], "list": ["y", "x"]});
    assert_eq!(texts(&schema, atomic, Some(old)).len(), 1);
}

#[test]
fn optional_old_self_is_evaluated_on_create() {
    let rules = json!([{"rule": "oldSelf.hasValue() || self.n == 1", "optionalOldSelf": true,
        "message": "starts at 1"}]);
    let schema = schema(rules);
    assert!(texts(&schema, json!({"n": 1}), None).is_empty());
    let expected = "spec: Invalid value: \"object\": starts at 1";
    assert_eq!(texts(&schema, json!({"n": 2}), None), [expected]);
    assert!(texts(&schema, json!({"n": 2}), Some(json!({"n": 1}))).is_empty());
}

#[test]
fn unchanged_values_only_warn() {
    let schema = schema(json!([{"rule": "self.n <= 10", "message": "n too big"}]));
    let object = json!({"spec": {"n": 11}, "metadata": {"labels": {"a": "b"}}});
    let verdict = validate(&schema, &object, Some(&json!({"spec": {"n": 11}})));
    assert!(verdict.errors.is_empty());
    assert_eq!(verdict.warnings, ["spec: Invalid value: \"object\": n too big"]);
}

#[test]
fn what_cannot_be_evaluated_only_warns() {
    let found =
        texts(&schema(json!([{"rule": "self.list.fancy(x, y, true)"}])), json!({"list": []}), None);
    assert!(found[0].starts_with("warning: spec: rule not evaluated"), "{found:?}");
}

#[test]
fn bad_rules_are_found_at_compile_time() {
    let root = schema(json!([]));
    let spec = root.property("spec").unwrap();
    let check = |rule: &str, expected: Option<&str>| {
        let problem = compile_problem(spec, rule, Wanted::Boolean);
        assert_eq!(problem.as_deref(), expected, "{rule}");
    };
    check(
        "self.zzz > 1",
        Some("ERROR: <input>:1:5: undefined field 'zzz'\n | self.zzz > 1\n | ....^"),
    );
    check(
        "self.list.exists(i, i == foo)",
        Some(
            "ERROR: <input>:1:26: undeclared reference to 'foo' (in container '')\n | self.list.exists(i, i == foo)\n | .........................^",
        ),
    );
    check(
        "self.s == 1",
        Some(
            "ERROR: <input>:1:8: found no matching overload for '_==_' applied to '(string, int)'\n | self.s == 1\n | .......^",
        ),
    );
    check("self.n", Some("must evaluate to a bool"));
    for good in [
        "self.items.all(i, i.v > 0)",
        "has(self.s) ? self.s == 'a' : true",
        "self.map.all(k, self.map[k] > 0)",
        "sets.contains([self.n], [3])",
        "self.when > timestamp('2020-01-01T00:00:00Z')",
        "self.list.map(x, x + 'a').size() == 2",
        "self.n > 1.5",
        "type(self.n) == int",
        "!format.dns1123Label().validate(self.s).hasValue()",
        "self.?s.hasValue()",
        "oldSelf.n == self.n",
    ] {
        check(good, None);
    }
}

#[test]
fn syntax_errors_are_located() {
    let root = schema(json!([]));
    let problem = compile_problem(&root, "self.n >", Wanted::Boolean).unwrap();
    assert!(problem.starts_with("ERROR: <input>:1:9: Syntax error: "), "{problem}");
}

#[test]
fn conditions_see_the_request() {
    let condition =
        Condition::parse("request.operation == 'CREATE' && object.metadata.name != 'x'").unwrap();
    let (object, request) = (json!({"metadata": {"name": "y"}}), json!({"operation": "CREATE"}));
    let variables = Variables { object: &object, old_object: &Value::Null, request: &request };
    assert_eq!(condition.holds(variables), Ok(true));
    assert!(Condition::parse("object.").is_err());
    assert!(Condition::parse("object.nothing").unwrap().holds(variables).is_err());
}
