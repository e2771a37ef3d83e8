//! Evaluates the expressions of a policy for a write.
//!
//! Expensive expressions are evaluated on another thread, so that they do not block this one.

use std::sync::Arc;

use serde_json::Value;

use crate::StatusError;
use crate::admission::matching;
use crate::fields::{items, text};
use crate::schema::cel::{self, Environment};

/// Longer messages are ignored.
const MESSAGE_BYTES_MAX: usize = 5 << 10;

/// The expressions of one policy.
#[derive(Clone)]
pub(super) struct Rules {
    variables: Vec<(String, String)>,
    conditions: Vec<String>,
    validations: Vec<Validation>,
    annotations: Vec<(String, String)>,
    ignores_errors: bool,
}

#[derive(Clone)]
struct Validation {
    expression: String,
    message: String,
    message_expression: String,
    reason: String,
}

/// A validation that failed or could not be evaluated.
pub(super) struct Failure {
    /// The index of the validation.
    pub(super) index: usize,
    pub(super) message: String,
    /// Empty means `Invalid`.
    pub(super) reason: String,
}

/// An annotation for the audit log.
pub(super) struct Annotation {
    pub(super) key: String,
    /// `None` if there is no annotation; an error rejects the write.
    pub(super) value: Result<Option<String>, String>,
}

/// The results of a policy for a write.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) failures: Vec<Failure>,
    pub(super) annotations: Vec<Annotation>,
}

impl Rules {
    pub(super) fn of(policy: &Value) -> Self {
        let own = |value: &Value, key: &str| text(value, &[key]).to_owned();
        let pairs = |list: &str, name: &str, value: &str| {
            let all = items(policy, &["spec", list]).iter();
            all.map(|one| (own(one, name), own(one, value))).collect()
        };
        let validations = items(policy, &["spec", "validations"]).iter().map(|one| Validation {
            expression: own(one, "expression"),
            message: own(one, "message").trim().to_owned(),
            message_expression: own(one, "messageExpression"),
            reason: own(one, "reason"),
        });
        let conditions = items(policy, &["spec", "matchConditions"]).iter();
        Self {
            variables: pairs("variables", "name", "expression"),
            conditions: conditions.map(|one| own(one, "expression")).collect(),
            validations: validations.collect(),
            annotations: pairs("auditAnnotations", "key", "valueExpression"),
            ignores_errors: text(policy, &["spec", "failurePolicy"]) == "Ignore",
        }
    }

    /// The variables that expressions share.
    pub(super) fn variables(&self) -> Vec<(&str, &str)> {
        self.variables.iter().map(|(name, expression)| (&**name, &**expression)).collect()
    }

    /// Evaluates the expressions, on another thread if that takes long.
    pub(super) async fn evaluate(
        &self,
        environment: &Arc<Environment>,
    ) -> Result<Outcome, StatusError> {
        if let Some(outcome) = cel::quickly(|| self.outcome(environment)) {
            return Ok(outcome);
        }
        let (rules, environment) = (self.clone(), environment.renewed());
        let evaluated = tokio::task::spawn_blocking(move || rules.outcome(&environment)).await;
        evaluated.map_err(|error| {
            let problem = format!("could not evaluate a ValidatingAdmissionPolicy: {error}");
            StatusError::internal(problem)
        })
    }

    fn outcome(&self, environment: &Arc<Environment>) -> Outcome {
        cel::start_budget();
        match matching::all_hold(environment, self.conditions.iter().map(String::as_str)) {
            Ok(true) => {}
            Ok(false) => return Outcome::default(),
            Err(_) if self.ignores_errors => return Outcome::default(),
            Err(message) => {
                let failure = Failure { index: 0, message, reason: String::new() };
                return Outcome { failures: vec![failure], annotations: Vec::new() };
            }
        }
        cel::start_budget();
        let judged = self.validations.iter().enumerate();
        let failures =
            judged.filter_map(|(index, one)| self.failure(index, one, environment)).collect();
        cel::start_budget();
        let annotations = self.annotations.iter().map(|(key, expression)| Annotation {
            key: key.clone(),
            value: self.annotation(expression, environment),
        });
        Outcome { failures, annotations: annotations.collect() }
    }

    fn failure(
        &self,
        index: usize,
        validation: &Validation,
        environment: &Arc<Environment>,
    ) -> Option<Failure> {
        let expression = &validation.expression;
        match environment.holds(expression) {
            Ok(true) => None,
            Ok(false) => {
                let message = validation.message(environment);
                Some(Failure { index, message, reason: validation.reason.clone() })
            }
            Err(_) if self.ignores_errors => None,
            Err(problem) => {
                let message = format!("expression '{expression}' resulted in error: {problem}");
                Some(Failure { index, message, reason: String::new() })
            }
        }
    }

    fn annotation(
        &self,
        expression: &str,
        environment: &Arc<Environment>,
    ) -> Result<Option<String>, String> {
        match environment.text(expression) {
            Ok(value) => Ok(value.filter(|text| !text.is_empty())),
            Err(problem) if problem.contains("unsupported return type") => Err(problem),
            Err(_) if self.ignores_errors => Ok(None),
            Err(problem) => Err(format!("expression '{expression}' resulted in error: {problem}")),
        }
    }
}

impl Validation {
    /// The message of a failed validation: its own, if it has one.
    fn message(&self, environment: &Arc<Environment>) -> String {
        let made = match self.message_expression.as_str() {
            "" => None,
            expression => environment.text(expression).ok().flatten(),
        };
        let is_usable = |text: &String| {
            !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX && !text.contains('\n')
        };
        made.filter(is_usable).unwrap_or_else(|| match self.message.as_str() {
            "" => format!("failed expression: {}", self.expression.trim()),
            message => message.to_owned(),
        })
    }
}
