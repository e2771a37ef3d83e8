//! What later releases refuse otherwise, or for other reasons.
//!
//! Pure: the list of changes, each about single causes or pairs of causes. Each names the place in
//! upstream's sources or its release notes where the reason is not obvious.

use super::Exchanges;
use super::causes::{Cause, Unequal};
use super::texts;

/// One change of validation; explains a cause of one server, or one of each that belong together.
pub(super) struct Change {
    pub(super) about: &'static str,
    pub(super) explains: fn(&Exchanges, &Unequal) -> bool,
}

pub(super) const CHANGES: [Change; 17] = [
    Change {
        about: "errors show refused values as JSON; before, as Go prints them or in quotes",
        explains: |_, it| {
            pair(it, |judge, subject| {
                is_same_place(judge, subject)
                    && texts::shows_value_otherwise(judge.message, subject.message)
            })
        },
    },
    Change {
        about: "errors of CEL rules show no type in the place of the value",
        explains: |_, it| {
            pair(it, |judge, subject| {
                is_same_place(judge, subject) && texts::omits_type(judge.message, subject.message)
            })
        },
    },
    Change {
        about: "errors have other words, such as \"must not be empty\" without the field's name",
        explains: |_, it| {
            pair(it, |judge, subject| {
                is_same_place(judge, subject)
                    && texts::says_in_other_words(judge.message, subject.message)
            })
        },
    },
    Change {
        about: "an error is reported once; before, updates ran the checks of new objects twice",
        explains: |_, it| only_subject(it, |subject| is_repeated(it, subject)),
    },
    Change {
        about: "autoscalers: references need a group; 0 as the maximum is \"required\"",
        explains: |exchanges, it| {
            exchanges.path.contains("/horizontalpodautoscalers") && is_about_scalers(it)
        },
    },
    Change {
        about: "autoscalers: `tolerance` of the behaviour",
        explains: |exchanges, it| {
            exchanges.path.contains("/horizontalpodautoscalers")
                && only_judge(it, |judge| judge.field.ends_with(".tolerance"))
        },
    },
    Change {
        about: "fields that cannot change are \"immutable\" instead of \"forbidden\"",
        explains: |exchanges, it| {
            exchanges.path.contains("/storageclasses/")
                && pair(it, |judge, subject| {
                    let field = judge.field;
                    field == subject.field
                        && judge.message.ends_with(": field is immutable")
                        && subject.message
                            == format!("Forbidden: updates to {field} are forbidden.")
                })
        },
    },
    Change {
        about: "a missing name is only \"required\"; before, also no valid name",
        explains: |_, it| {
            only_subject(it, |subject| {
                let is_required = |cause: &Cause| {
                    cause.field == subject.field && cause.reason == "FieldValueRequired"
                };
                subject.message.starts_with("Invalid value: \"\": a lowercase RFC 1123 ")
                    && it.judges.iter().any(is_required)
            })
        },
    },
    Change {
        about: "custom resources: numbers of the wrong kind are also found by their format",
        explains: |exchanges, it| {
            is_custom(exchanges)
                && (only_judge(it, |judge| {
                    judge.field == "<nil>"
                        && judge.message.contains(": Checked value must be of type ")
                }) || pair(it, |judge, subject| {
                    is_same_place(judge, subject)
                        && judge.message.contains(" in body must be of type int")
                        && subject.message.contains(" in body must be of type integer: ")
                }))
        },
    },
    Change {
        about: "StatefulSets: the templates of Pods and claims are checked, and the Service's name",
        explains: |exchanges, it| {
            exchanges.path.contains("/statefulsets")
                && only_judge(it, |judge| {
                    judge.field.starts_with("spec.template.spec.")
                        || judge.field.starts_with("spec.volumeClaimTemplates[")
                        || judge.field == "spec.serviceName"
                })
        },
    },
    Change {
        about: "names of Services may start with a digit",
        explains: |exchanges, it| {
            let is_service = exchanges.path.ends_with("/services");
            let is_reference = exchanges.path.contains("/ingresses");
            (is_service || is_reference)
                && only_subject(it, |subject| {
                    let name = ["metadata.name", "metadata.generateName", ".service.name"];
                    name.iter().any(|end| subject.field.ends_with(end))
                        && subject.message.contains(": a DNS-1035 label must ")
                })
        },
    },
    Change {
        about: "errors name other fields: `tolerations`, `allocatedResourceStatuses`, the Pod of a Job",
        explains: |_, it| {
            const FIELDS: [(&str, &str); 3] = [
                ("scheduling.tolerations.tolerations[", "scheduling.tolerations["),
                ("status.allocatedResourceStatus", "status.allocatedResourceStatuses"),
                ("spec.template", "spec.template.spec"),
            ];
            pair(it, |judge, subject| {
                let is_renamed = FIELDS.iter().any(|(before, after)| {
                    subject.field.starts_with(before)
                        && subject.field.replacen(before, after, 1) == judge.field
                });
                is_renamed
                    && judge.reason == subject.reason
                    && (judge.message == subject.message
                        || texts::shows_value_otherwise(judge.message, subject.message))
            })
        },
    },
    Change {
        about: "Pods may set `resources` for all containers together, and mount images",
        explains: |_, it| {
            only_judge(it, |judge| {
                judge.field.contains(".image.reference")
                    || judge.field.ends_with("spec.resources")
                    || judge.field.contains("spec.resources.")
            })
        },
    },
    Change {
        about: "containers may have a `restartPolicy` of their own",
        explains: |_, it| {
            only_subject(it, |subject| {
                let is_of_container = ["containers[", "Containers["]
                    .iter()
                    .any(|containers| subject.field.contains(containers));
                is_of_container && subject.field.ends_with("].restartPolicy")
            })
        },
    },
    Change {
        about: "Pods: claims of devices are checked",
        explains: |_, it| {
            only_judge(it, |judge| {
                judge.field.contains(".resources.claims[")
                    || judge.field.starts_with("spec.resourceClaims")
            })
        },
    },
    Change {
        about: "an empty choice is \"required\"; before, \"unsupported\"",
        explains: |_, it| {
            pair(it, |judge, subject| {
                judge.field == subject.field
                    && judge.message == "Required value"
                    && subject.message.starts_with("Unsupported value: \"\": supported values: ")
            })
        },
    },
    Change {
        about: "claims: the class of volume attributes is checked",
        explains: |_, it| {
            only_judge(it, |judge| judge.field.ends_with("spec.volumeAttributesClassName"))
        },
    },
];

fn is_same_place(judge: &Cause, subject: &Cause) -> bool {
    judge.field == subject.field && judge.reason == subject.reason
}

fn pair(unequal: &Unequal, belong: impl Fn(&Cause, &Cause) -> bool) -> bool {
    unequal.judge.zip(unequal.subject).is_some_and(|(judge, subject)| belong(judge, subject))
}

fn only_judge(unequal: &Unequal, matches: impl Fn(&Cause) -> bool) -> bool {
    unequal.subject.is_none() && unequal.judge.is_some_and(matches)
}

fn only_subject(unequal: &Unequal, matches: impl Fn(&Cause) -> bool) -> bool {
    unequal.judge.is_none() && unequal.subject.is_some_and(matches)
}

/// Whether the subject names the cause more often than the judge, and the judge names it too, maybe
/// in other words.
fn is_repeated(unequal: &Unequal, cause: &Cause) -> bool {
    let twins = unequal.subjects.iter().filter(|it| {
        it.field == cause.field && it.reason == cause.reason && it.message == cause.message
    });
    twins.count() > 1 && unequal.judges.iter().any(|it| is_same_place(it, cause))
}

fn is_about_scalers(unequal: &Unequal) -> bool {
    const GROUP: &str = "Invalid value: \"\": apiVersion must specify API group";
    only_judge(unequal, |judge| {
        judge.field.ends_with(".apiVersion")
            && (judge.message == GROUP
                || judge.message.contains(": unexpected GroupVersion string: "))
    }) || pair(unequal, |judge, subject| {
        judge.field == "spec.maxReplicas"
            && subject.field == judge.field
            && judge.message == "Required value: must be set and greater than 0"
            && subject.message == "Invalid value: 0: must be greater than 0"
    })
}

/// Whether the request is about objects of a definition that the script has made.
fn is_custom(exchanges: &Exchanges) -> bool {
    exchanges.path.starts_with("/apis/${ns}.kopf.dev/")
}
