//! Rules, their messages and compile-time checks.

use serde_json::{Value, json};

use super::*;
use crate::access::Decision;
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

fn environment(variables: &[(&'static str, &'static str)]) -> std::sync::Arc<Environment> {
    let object = json!({"metadata": {"name": "a", "labels": {"x": "1"}}, "list": [1, 2, 3]});
    let request = json!({"operation": "CREATE"});
    let admitted =
        Admitted { object: Some(&object), request: Some(&request), ..Admitted::default() };
    start_budget();
    Environment::new(admitted, variables.iter().copied())
}

#[test]
fn conditions_see_objects_and_request() {
    let environment = environment(&[]);
    let holds = |expression: &str| environment.holds(expression);
    assert_eq!(holds("request.operation == 'CREATE' && object.metadata.name != 'x'"), Ok(true));
    assert_eq!(holds("oldObject == null && params == null"), Ok(true));
    assert!(holds("object.").is_err());
    assert!(holds("object.nothing").is_err());
}

#[test]
fn variables_are_evaluated_when_asked_for_and_see_each_other() {
    let environment = environment(&[
        ("labels", "object.metadata.labels"),
        ("count", "variables.labels.size() + object.list.size()"),
        ("broken", "object.absent.field"),
    ]);
    assert_eq!(environment.holds("variables.count == 4 && has(variables.count)"), Ok(true));
    assert_eq!(environment.holds("[1, 2].all(n, n < variables.count)"), Ok(true));
    assert_eq!(environment.holds("true || variables.broken == 1"), Ok(true));
    assert_eq!(
        environment.holds("variables.broken == 1").unwrap_err(),
        "composited variable \"broken\" fails to evaluate: no such key: absent"
    );
    assert_eq!(environment.text("'n: ' + string(variables.count)"), Ok(Some("n: 4".to_owned())));
}

#[test]
fn endlessly_recursive_variables_are_rejected() {
    let names: Vec<String> = (0..300).map(|index| format!("v{index}")).collect();
    let sources: Vec<String> = (0..300)
        .map(|index| match index {
            0 => "1".to_owned(),
            _ => format!("(((((variables.v{}))))) + 1", index - 1),
        })
        .collect();
    let pairs = names.iter().map(String::as_str).zip(sources.iter().map(String::as_str));
    let environment = Environment::new(Admitted::default(), pairs);
    start_budget();
    let problem = environment.holds("variables.v299 == 300").unwrap_err();
    assert!(problem.contains("variables nest too deeply"), "{problem}");
    assert_eq!(environment.renewed().holds("variables.v2 == 3"), Ok(true));
}

#[test]
fn rights_are_asked_step_by_step() {
    let access: Access = std::sync::Arc::new(|account, question| {
        let is_allowed = account == Some(("ns", "bot")) && question.verb == "get"
            || question.resource == "pods" && question.namespace == "ns"
            || question.path == "/healthz";
        match is_allowed {
            true => Decision::Allow("because".to_owned()),
            false => Decision::Deny(String::new()),
        }
    });
    let request = json!({"resource": {"group": "", "resource": "pods"}, "namespace": "ns"});
    let admitted =
        Admitted { access: Some(access), request: Some(&request), ..Admitted::default() };
    let environment = Environment::new(admitted, []);
    start_budget();
    for (expression, expected) in [
        ("authorizer.group('').resource('pods').namespace('ns').check('list').allowed()", true),
        ("authorizer.group('').resource('pods').namespace('x').check('list').allowed()", false),
        (
            "authorizer.serviceAccount('ns', 'bot').group('').resource('x').check('get').allowed()",
            true,
        ),
        ("authorizer.path('/healthz').check('get').reason() == 'because'", true),
        ("authorizer.requestResource.check('create').allowed()", true),
        ("authorizer.requestResource.check('create').errored()", false),
    ] {
        assert_eq!(environment.holds(expression), Ok(expected), "{expression}");
    }
}

#[test]
fn functions_on_texts_cost_what_they_go_through() {
    let text = "x".repeat(20_000);
    let cost = |rule: &str| {
        let schema = schema(json!([{"rule": rule}]));
        texts(&schema, json!({"s": text, "list": vec!["y"; 1000]}), None)
    };
    // 20000 characters cost 2000 per read, twice that if a string is created; the limit is a
    // million.
    let too_much = "spec: Invalid value: \"object\": 'operation cancelled: actual cost limit \
                    exceeded': no further validation rules will be run due to call cost exceeds \
                    limit for rule: ";
    for expensive in [
        "self.list.all(y, self.s.replace('x', 'z') != y)",
        "self.list.all(y, self.s.split('z').size() == 1)",
        "self.list.all(y, !self.s.contains(self.s + y))",
        "self.list.all(y, self.s.lowerAscii() != y)",
        "self.list.all(y, (y + self.s) != '')",
        "self.list.all(y, y in self.list)",
        "{'a': self.list.all(y, self.s.upperAscii() != y)}['a']",
    ] {
        assert_eq!(cost(expensive), [format!("{too_much}{expensive}")], "{expensive}");
    }
    for cheap in [
        "self.s.replace('x', 'z') != ''",
        "self.list.all(y, y.replace('y', 'z') == 'z')",
        "self.list.all(y, !y.contains('x'))",
        "self.list.all(y, y in ['x', 'y'])",
    ] {
        assert_eq!(cost(cheap), Vec::<String>::new(), "{cheap}");
    }
}

#[test]
fn only_mutations_construct_values() {
    // The parser takes such literals everywhere, but there is no type for them.
    let found = compile_problem(&schema(json!([])), "Other{a: 1} == self", Wanted::Boolean);
    assert!(found.unwrap().contains("undeclared reference to 'Other' (in container '')"));
    let environment = environment(&[]);
    assert!(environment.holds("Object{a: 1} == null").is_err());
    let made = environment.mutation("Object{spec: Object.spec{n: [1, 2].map(x, x + 1)}}");
    assert_eq!(made.unwrap(), json!({"spec": {"n": [2, 3]}}));
    let misplaced = environment.mutation("Object{spec: Object.other{n: 1}}").unwrap_err();
    assert!(misplaced.contains("unexpected type name \"Object.other\""), "{misplaced}");
}

#[test]
fn policies_know_their_variables() {
    let problem = |source: &str| condition_problem(source, &[], Some(&["n"]), Wanted::Boolean);
    assert_eq!(problem("variables.n == 1"), None);
    assert!(problem("variables.none == 1").unwrap().contains("undefined field 'none'"));
    let found = condition_problem("5", &[], None, Wanted::TextOrNull);
    assert_eq!(found.unwrap(), "must evaluate to one of [string null_type] but got int");
    assert_eq!(condition_problem("null", &[], None, Wanted::TextOrNull), None);
}
