//! Rules of nodes.

use std::collections::HashSet;

use serde_json::Value;

use super::{Problems, go_text, ingress, resources};
use crate::fields::{list, text};
use crate::names::qualified_name_problems;

/// The errors of a node.
pub(super) fn check(object: &Value, problems: &mut Problems) {
    let spec = &object["spec"];
    taints(spec, problems);
    amounts(&object["status"], problems);
    let ranges = list(spec, "podCIDRs");
    for (index, range) in ranges.iter().enumerate() {
        ingress::cidr(range, &format!("spec.podCIDRs[{index}]"), problems);
    }
    let is_wide = |range: &&Value| range.as_str().unwrap_or_default().contains(':');
    let wide = ranges.iter().filter(is_wide).count();
    if wide > 1 || ranges.len() - wide > 1 {
        let detail = "may specify no more than one CIDR for each IP family";
        problems.invalid_text("spec.podCIDRs", &go_text::string_list(&spec["podCIDRs"]), detail);
    }
}

/// The errors of an updated node or its status.
pub(super) fn update(object: &Value, old: &Value, problems: &mut Problems) {
    let (spec, old_spec) = (&object["spec"], &old["spec"]);
    amounts(&object["status"], problems);
    let mut seen = HashSet::new();
    for (index, address) in list(&object["status"], "addresses").iter().enumerate() {
        let (kind, place) = (text(address, "type"), text(address, "address"));
        if !seen.insert((kind, place)) {
            let message =
                format!("Duplicate value: core.NodeAddress{{Type:{kind:?}, Address:{place:?}}}");
            let path = format!("status.addresses[{index}]");
            let reason = crate::FieldErrorReason::Duplicate;
            problems.found.push(crate::FieldError::new(reason, path, message));
        }
    }
    let (ranges, old_ranges) = (list(spec, "podCIDRs"), list(old_spec, "podCIDRs"));
    let changes = match old_ranges.len() == ranges.len() {
        true => old_ranges.iter().zip(ranges).filter(|(old, new)| old != new).count(),
        false => usize::from(!old_ranges.is_empty()),
    };
    for _ in 0..changes {
        let detail = "node updates may not change podCIDR except from \"\" to valid";
        problems.forbidden("spec.podCIDRs", detail);
    }
    let provider = text(old_spec, "providerID");
    if !provider.is_empty() && provider != text(spec, "providerID") {
        let detail = "node updates may not change providerID except from \"\" to valid";
        problems.forbidden("spec.providerID", detail);
    }
    taints(spec, problems);
}

fn amounts(status: &Value, problems: &mut Problems) {
    for field in ["capacity", "allocatable"] {
        for (name, amount) in status[field].as_object().into_iter().flatten() {
            resources::quantity(name, amount, &format!("status.{field}.{name}"), problems);
        }
    }
}

fn taints(spec: &Value, problems: &mut Problems) {
    const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
    let mut seen = HashSet::new();
    for (index, taint) in list(spec, "taints").iter().enumerate() {
        // Upstream reports taints as part of the metadata.
        let path = format!("metadata.taints[{index}]");
        for problem in qualified_name_problems(text(taint, "key")) {
            problems.invalid(&format!("{path}.key"), &text(taint, "key").into(), &problem);
        }
        let value = text(taint, "value");
        if let Err(problem) = crate::names::check_label_value(value) {
            problems.invalid(&format!("{path}.value"), &value.into(), &problem);
        }
        if text(taint, "effect").is_empty() {
            problems.required(&format!("{path}.effect"), "");
        } else {
            problems.one_of(&format!("{path}.effect"), &taint["effect"], &EFFECTS);
        }
        if !seen.insert((text(taint, "key"), text(taint, "effect"))) {
            let message = format!(
                "Duplicate value: core.Taint{{Key:{:?}, Value:{value:?}, Effect:{:?}, \
                 TimeAdded:<nil>}}: taints must be unique by key and effect pair",
                text(taint, "key"),
                text(taint, "effect")
            );
            let reason = crate::FieldErrorReason::Duplicate;
            problems.found.push(crate::FieldError::new(reason, path, message));
        }
    }
}
