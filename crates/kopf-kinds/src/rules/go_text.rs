//! Values in validation errors, as printed by Go's `%#v`.

use serde_json::Value;

use crate::fields::{list, text};

/// `map[string]string{"a":"b"}`.
pub(super) fn string_map(value: &Value) -> String {
    let Some(fields) = value.as_object() else { return "map[string]string(nil)".into() };
    let mut pairs: Vec<String> = fields
        .iter()
        .map(|(key, value)| format!("{key:?}:{:?}", value.as_str().unwrap_or_default()))
        .collect();
    pairs.sort();
    format!("map[string]string{{{}}}", pairs.join(", "))
}

/// `v1.LabelSelector{MatchLabels:..., MatchExpressions:...}`.
pub(super) fn label_selector(selector: &Value) -> String {
    if selector.is_null() {
        return "\"null\"".into();
    }
    let expressions: Vec<String> = list(selector, "matchExpressions")
        .iter()
        .map(|expression| {
            format!(
                "v1.LabelSelectorRequirement{{Key:{:?}, Operator:{:?}, Values:{}}}",
                text(expression, "key"),
                text(expression, "operator"),
                string_list(&expression["values"]),
            )
        })
        .collect();
    let expressions = if expressions.is_empty() {
        "[]v1.LabelSelectorRequirement(nil)".to_owned()
    } else {
        format!("[]v1.LabelSelectorRequirement{{{}}}", expressions.join(", "))
    };
    let labels = string_map(&selector["matchLabels"]);
    format!("v1.LabelSelector{{MatchLabels:{labels}, MatchExpressions:{expressions}}}")
}

/// `[]string{"a", "b"}`.
pub(super) fn string_list(value: &Value) -> String {
    let Some(items) = value.as_array() else { return "[]string(nil)".into() };
    let items: Vec<String> =
        items.iter().map(|item| format!("{:?}", item.as_str().unwrap_or_default())).collect();
    format!("[]string{{{}}}", items.join(", "))
}

/// `[]int32{1, 2}`.
pub(super) fn int32_list(value: &Value) -> String {
    let Some(items) = value.as_array() else { return "[]int32(nil)".into() };
    let items: Vec<String> = items.iter().map(Value::to_string).collect();
    format!("[]int32{{{}}}", items.join(", "))
}

/// `intstr.IntOrString{Type:0, IntVal:1, StrVal:""}`.
pub(super) fn int_or_string(value: &Value) -> String {
    match value {
        Value::String(text) => format!("intstr.IntOrString{{Type:1, IntVal:0, StrVal:{text:?}}}"),
        other => {
            let number = other.as_i64().unwrap_or_default();
            format!("intstr.IntOrString{{Type:0, IntVal:{number}, StrVal:\"\"}}")
        }
    }
}

/// A time as Go prints it, such as `2020-01-02 03:04:05 +0000 UTC`.
pub(super) fn time(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    match text.parse::<jiff::Timestamp>() {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%S +0000 UTC").to_string(),
        Err(_) => text.to_owned(),
    }
}

/// `core.SecurityContext{...}`, of which Go prints only addresses.
pub(super) fn security_context(context: &Value) -> String {
    const FIELDS: [(&str, &str, &str); 12] = [
        ("Capabilities", "capabilities", "core.Capabilities"),
        ("Privileged", "privileged", "bool"),
        ("SELinuxOptions", "seLinuxOptions", "core.SELinuxOptions"),
        ("WindowsOptions", "windowsOptions", "core.WindowsSecurityContextOptions"),
        ("RunAsUser", "runAsUser", "int64"),
        ("RunAsGroup", "runAsGroup", "int64"),
        ("RunAsNonRoot", "runAsNonRoot", "bool"),
        ("ReadOnlyRootFilesystem", "readOnlyRootFilesystem", "bool"),
        ("AllowPrivilegeEscalation", "allowPrivilegeEscalation", "bool"),
        ("ProcMount", "procMount", "core.ProcMountType"),
        ("SeccompProfile", "seccompProfile", "core.SeccompProfile"),
        ("AppArmorProfile", "appArmorProfile", "core.AppArmorProfile"),
    ];
    let fields = FIELDS.map(|(name, field, kind)| {
        let address = if context[field].is_null() { "nil" } else { "0xc000000000" };
        format!("{name}:(*{kind})({address})")
    });
    format!("core.SecurityContext{{{}}}", fields.join(", "))
}

/// `runtime.RawExtension{...}` with the bytes of the value's JSON.
pub(super) fn raw_extension(value: &Value) -> String {
    let bytes: Vec<String> = value.to_string().bytes().map(|byte| format!("{byte:#x}")).collect();
    format!(
        "runtime.RawExtension{{Raw:[]uint8{{{}}}, Object:runtime.Object(nil)}}",
        bytes.join(", ")
    )
}

/// A quoted string.
pub(super) fn quoted(value: &Value) -> String {
    format!("{:?}", value.as_str().unwrap_or_default())
}
