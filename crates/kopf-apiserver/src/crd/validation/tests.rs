//! CRDs that upstream rejects, with the recorded messages, and some that it accepts.

use serde_json::json;

use super::*;

fn crd(schema: Value) -> Value {
    json!({
        "metadata": {"name": "bads.t.io"},
        "spec": {
            "group": "t.io",
            "scope": "Namespaced",
            "names": {"plural": "bads", "singular": "bad", "kind": "Bad", "listKind": "BadList"},
            "conversion": {"strategy": "None"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

fn with_spec(spec: Value) -> Value {
    crd(json!({"type": "object", "properties": {"spec": spec}}))
}

fn messages(crd: &Value) -> Vec<String> {
    validate(crd, None).iter().map(FieldError::full_message).collect()
}

fn check_spec_schema(spec: Value, expected: &[&str]) {
    let prefix = "spec.validation.openAPIV3Schema.properties[spec]";
    let expected: Vec<String> = expected.iter().map(|text| text.replace('@', prefix)).collect();
    assert_eq!(messages(&with_spec(spec.clone())), expected, "{spec}");
}

#[test]
fn recorded_refusals() {
    let mut wrong_name = crd(json!({"type": "object"}));
    wrong_name["metadata"]["name"] = json!("x.t.io");
    let expected =
        "metadata.name: Invalid value: \"x.t.io\": must be spec.names.plural+\".\"+spec.group";
    assert_eq!(messages(&wrong_name), [expected]);

    let mut no_schema = crd(json!({}));
    no_schema["spec"]["versions"][0].as_object_mut().unwrap().remove("schema");
    let expected = "spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required";
    assert_eq!(messages(&no_schema), [expected]);

    check_spec_schema(
        json!({"properties": {"a": {"type": "string"}}}),
        &["@.type: Required value: must not be empty for specified object fields"],
    );
    check_spec_schema(
        json!({"type": "object", "properties": {"a": {"type": "string", "default": 1}}}),
        &[
            "@.properties[a].default: Invalid value: \"integer\":  in body must be of type string: \"integer\"",
        ],
    );
    check_spec_schema(
        json!({"type": "object", "properties": {"a": {"type": "string", "maxLength": 10}},
            "x-kubernetes-validations": [{"rule": "self.zzz > 1"}]}),
        &[
            "@.x-kubernetes-validations[0].rule: Invalid value: apiextensions.ValidationRule{Rule:\"self.zzz > 1\", Message:\"\", MessageExpression:\"\", Reason:(*apiextensions.FieldValueErrorReason)(nil), FieldPath:\"\", OptionalOldSelf:(*bool)(nil)}: compilation failed: ERROR: <input>:1:5: undefined field 'zzz'\n | self.zzz > 1\n | ....^",
        ],
    );
}

#[test]
fn rules_that_cost_too_much_are_refused() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}},
        "x-kubernetes-validations": [{"rule": "self.a.all(x, self.a.all(y, self.a.all(z, x+y+z != \"\")))"}]});
    let found = messages(&with_spec(schema));
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0].contains("estimated rule cost exceeds budget by factor of more than 100x"));
    assert!(found[1].contains("contributed to estimated rule cost total"));
    assert!(
        found[2]
            .starts_with("spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations")
    );
}

/// Upstream knows the sizes of items only if the schema declares the list itself.
#[test]
fn joins_of_made_lists_cost_too_much() {
    let schema = |message: &str| {
        json!({"type": "object",
            "properties": {"a": {"type": "array", "maxItems": 5,
                "items": {"type": "string", "maxLength": 5}}},
            "x-kubernetes-validations": [{"rule": "self.a.size() < 3", "messageExpression": message}]})
    };
    assert_eq!(messages(&with_spec(schema("self.a.join(',')"))), Vec::<String>::new());
    let found = messages(&with_spec(schema("self.a.filter(x, x != '').join(',')")));
    assert!(found[0].contains("estimated messageExpression cost exceeds budget"), "{found:?}");
}

#[test]
fn costs_follow_from_the_limits_of_the_schema() {
    let found = |items: i64, length: i64, rule: &str| {
        let schema = json!({"type": "array", "maxItems": items,
            "items": {"type": "string", "maxLength": length},
            "x-kubernetes-validations": [{"rule": rule}]});
        messages(&with_spec(schema))
    };
    let pairs = "self.all(x, self.exists(y, x == y))";
    assert!(found(100, 100, pairs).is_empty());
    let refused = found(1000, 1000, pairs);
    assert!(refused[0].contains("exceeds budget by factor of 40."), "{refused:?}");
    assert!(found(10_000, 10, "self.all(x, x.size() > 0 && x.startsWith('a'))").is_empty());
    let refused = found(10_000, 100_000, "self.all(x, x.matches('^[a-z]+$'))");
    assert!(refused[0].contains("exceeds budget by factor of 80.0x"), "{refused:?}");
}

#[test]
fn rules_of_items_cost_as_often_as_there_are_items() {
    let schema = |limit: Value| {
        let mut list = json!({"type": "array", "items": {"type": "object",
            "properties": {"s": {"type": "string", "maxLength": 1000}},
            "x-kubernetes-validations": [{"rule": "self.s.contains('abcdefghijkl')"}]}});
        if !limit.is_null() {
            list["maxItems"] = limit;
        }
        messages(&with_spec(list))
    };
    assert!(schema(json!(1000)).is_empty());
    assert!(schema(Value::Null)[0].contains("estimated rule cost exceeds budget by factor of"));
}

#[test]
fn names_scope_and_versions() {
    let mut bad = crd(json!({"type": "object"}));
    bad["spec"]["scope"] = json!("Galaxy");
    bad["spec"]["names"]["kind"] = json!("Bad_Kind");
    bad["spec"]["versions"][0]["storage"] = json!(false);
    let found = messages(&bad);
    assert_eq!(
        found[0],
        "spec.scope: Unsupported value: \"Galaxy\": supported values: \"Cluster\", \"Namespaced\""
    );
    assert!(found[1].ends_with("must have exactly one version marked as storage version"));
    assert!(found[2].starts_with("spec.names.kind: Invalid value: \"Bad_Kind\": may have mixed case, but should otherwise match: a DNS-1035 label"));
    let mut dotless = crd(json!({"type": "object"}));
    dotless["spec"]["group"] = json!("tio");
    dotless["metadata"]["name"] = json!("bads.tio");
    assert_eq!(
        messages(&dotless),
        ["spec.group: Invalid value: \"tio\": should be a domain with at least one dot"]
    );
}

#[test]
fn structural_rules() {
    check_spec_schema(json!({"type": "array"}), &["@.items: Required value: must be specified"]);
    // Upstream checks only the branches of the root.
    let incomplete =
        crd(json!({"type": "object", "anyOf": [{"properties": {"b": {"pattern": "x"}}}]}));
    let root = "spec.validation.openAPIV3Schema";
    let expected = format!(
        "{root}.properties[b]: Required value: because it is defined in {root}.anyOf[0].properties[b]"
    );
    assert_eq!(messages(&incomplete), [expected]);
    check_spec_schema(
        json!({"type": "object", "properties": {"a": {"type": "string"}},
            "oneOf": [{"properties": {"a": {"type": "string"}}}]}),
        &["@.oneOf[0].properties[a].type: Forbidden: must be empty to be structural"],
    );
    check_spec_schema(
        json!({"type": "object", "x-kubernetes-embedded-resource": true}),
        &[
            "@.properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        ],
    );
    check_spec_schema(
        json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
        &[],
    );
    check_spec_schema(
        json!({"type": "string", "pattern": "(?=x)"}),
        &[
            "@.pattern: Invalid value: \"(?=x)\": must be a valid regular expression, but isn't: error parsing regexp: invalid or unsupported Perl syntax: `(?=`",
        ],
    );
}

#[test]
fn keyword_rules() {
    check_spec_schema(
        json!({"type": "strin"}),
        &[
            "@.type: Unsupported value: \"strin\": supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\"",
        ],
    );
    check_spec_schema(
        json!({"type": "array", "uniqueItems": true, "items": {"type": "string"}}),
        &[
            "@.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ],
    );
    check_spec_schema(
        json!({"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object",
            "properties": {"name": {"type": "string"}}}, "x-kubernetes-list-map-keys": ["name"]}),
        &[
            "@.items.properties[name].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ],
    );
    check_spec_schema(
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
        &[
            "@.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ],
    );
    check_spec_schema(
        json!({"type": "object", "properties": {"a": {"type": "object", "default": {"x": 1}}}}),
        &[
            "@.properties[a].default: Invalid value: map[string]interface {}{\"x\":1}: must not have unknown fields",
        ],
    );
}

#[test]
fn rules_of_rules() {
    let rules = |rules: Value| json!({"type": "object", "properties": {"a": {"type": "string"}}, "x-kubernetes-validations": rules});
    check_spec_schema(
        rules(json!([{"rule": " "}])),
        &["@.x-kubernetes-validations[0].rule: Required value: rule is not specified"],
    );
    check_spec_schema(
        rules(json!([{"rule": "self.a == 'x'", "fieldPath": ".b"}])),
        &[
            "@.x-kubernetes-validations[0].fieldPath: Invalid value: \".b\": fieldPath must be a valid path",
        ],
    );
    check_spec_schema(
        rules(json!([{"rule": "self.a == 'x'", "optionalOldSelf": true}])),
        &[
            "@.x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule",
        ],
    );
    check_spec_schema(
        json!({"type": "array", "maxItems": 5, "items": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}}),
        &[
            "@.items.x-kubernetes-validations[0].rule: Invalid value: \"self == oldSelf\": oldSelf cannot be used on the uncorrelatable portion of the schema within @",
        ],
    );
}

#[test]
fn subresources_columns_and_selectable_fields() {
    let mut bad = with_spec(json!({"type": "object", "properties": {"o": {"type": "object"}}}));
    let version = &mut bad["spec"]["versions"][0];
    version["subresources"] =
        json!({"scale": {"specReplicasPath": ".status.x", "statusReplicasPath": ""}});
    version["additionalPrinterColumns"] =
        json!([{"name": "", "type": "strang", "jsonPath": "spec"}]);
    version["selectableFields"] = json!([{"jsonPath": ".spec.o"}, {"jsonPath": ".spec.nope"}]);
    let found = messages(&bad);
    let expected = [
        "spec.subresources.scale.specReplicasPath: Invalid value: \".status.x\": should be a json path under .spec",
        "spec.subresources.scale.statusReplicasPath: Required value",
        "spec.additionalPrinterColumns[0].name: Required value",
        "spec.additionalPrinterColumns[0].type: Invalid value: \"strang\": must be one of boolean,date,integer,number,string",
        "spec.additionalPrinterColumns[0].JSONPath: Invalid value: \"spec\": must be a simple json path starting with .",
        "spec.selectableFields[0].jsonPath: Invalid value: \".spec.o\": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.",
        "spec.selectableFields[1].jsonPath: Invalid value: \".spec.nope\": is an invalid path: does not refer to a valid field",
    ];
    assert_eq!(found, expected);
}

#[test]
fn what_storage_depends_on_is_immutable() {
    let mut old = crd(json!({"type": "object"}));
    old["status"] = json!({"conditions": [{"type": "Established", "status": "True"}], "storedVersions": ["v1"]});
    let mut new = old.clone();
    new["spec"]["scope"] = json!("Cluster");
    new["spec"]["versions"][0]["name"] = json!("v2");
    let found: Vec<String> =
        validate(&new, Some(&old)).iter().map(FieldError::full_message).collect();
    assert_eq!(found[0], "spec.scope: Invalid value: \"Cluster\": field is immutable");
    assert!(found[1].ends_with("must have the storage version v2"));
    assert!(found[2].starts_with(
        "status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions"
    ));
}

#[test]
fn protected_groups_need_an_approval() {
    let mut protected = crd(json!({"type": "object"}));
    protected["spec"]["group"] = json!("x.k8s.io");
    protected["metadata"]["name"] = json!("bads.x.k8s.io");
    assert!(
        messages(&protected)[0]
            .starts_with("metadata.annotations[api-approved.kubernetes.io]: Required value")
    );
    protected["metadata"]["annotations"] =
        json!({"api-approved.kubernetes.io": "unapproved, a test"});
    assert!(messages(&protected).is_empty());
}

#[test]
fn good_definitions_pass() {
    check_spec_schema(
        json!({"type": "object", "required": ["n"],
            "x-kubernetes-validations": [{"rule": "self.n <= 10", "message": "n too big"},
                {"rule": "self.n >= oldSelf.n", "message": "n shrank"},
                {"rule": "self.s.startsWith(\"x\")", "messageExpression": "\"bad s \" + self.s",
                    "reason": "FieldValueForbidden", "fieldPath": ".s"}],
            "properties": {
                "n": {"type": "integer", "minimum": 1},
                "s": {"type": "string", "maxLength": 5, "pattern": "^x", "default": "xdef"},
                "io": {"x-kubernetes-int-or-string": true},
                "mp": {"type": "array", "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {"type": "object", "required": ["name"], "properties": {
                        "name": {"type": "string"}, "v": {"type": "string", "default": "dv"}}}},
                "emb": {"type": "object", "x-kubernetes-embedded-resource": true,
                    "x-kubernetes-preserve-unknown-fields": true}}}),
        &[],
    );
    let metadata = crd(json!({"type": "object", "properties": {
        "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}}}}));
    assert_eq!(messages(&metadata), Vec::<String>::new());
}

#[test]
fn the_structure_is_not_judged_with_unsupported_keywords() {
    check_spec_schema(
        json!({"type": "object", "properties": {
            "a": {},
            "b": {"type": "object", "x-kubernetes-preserve-unknown-fields": false},
        }}),
        &["@.properties[b].x-kubernetes-preserve-unknown-fields: Invalid value: false: must be \
             true or undefined"],
    );
}

#[test]
fn an_optional_old_value_is_no_value() {
    let rule = |rule: &str| {
        json!({"type": "string", "maxLength": 9,
            "x-kubernetes-validations": [{"rule": rule, "optionalOldSelf": true}]})
    };
    check_spec_schema(rule("oldSelf.orValue('') == self"), &[]);
    let found = messages(&with_spec(rule("oldSelf == self")));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("optional_type(string)"), "{found:?}");
    assert!(found[1].ends_with("may not be set if oldSelf is not used in rule"), "{found:?}");
}
