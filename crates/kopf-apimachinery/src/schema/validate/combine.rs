//! Checks of combinations: `anyOf`, `oneOf`, `allOf` and `not`.

use serde_json::Value;

use super::{Node, Outcome};
use crate::FieldError;
use crate::go_print::quoted;
use crate::schema::ir::{Link, Schema};

impl Node<'_> {
    pub(super) fn check_combinations(&self, schema: &Schema, value: &Value, outcome: &mut Outcome) {
        if !schema.any_of.is_empty() {
            self.check_any(&schema.any_of, value, outcome);
        }
        if !schema.one_of.is_empty() {
            self.check_one(&schema.one_of, value, outcome);
        }
        if !schema.all_of.is_empty() {
            self.check_all(&schema.all_of, value, outcome);
        }
        if let Some(not) = &schema.not
            && self.branch(not, value).problems.is_empty()
        {
            self.complain(outcome, "must not validate the schema (not)");
        }
        outcome.matched += 2;
    }

    /// Branches are never ignored for being unchanged.
    fn branch(&self, schema: &Schema, value: &Value) -> Outcome {
        let mut outcome = Outcome::default();
        self.check(schema, value, None, &mut outcome);
        outcome
    }

    /// As in upstream, such problems are not attached to a field.
    fn complain(&self, outcome: &mut Outcome, problem: &str) {
        let text = format!("{} {problem}", quoted(&self.path()));
        let field = if self.prefix.is_empty() { "<nil>" } else { self.prefix };
        outcome.add(FieldError::invalid(field, &Value::from(""), &text), text);
    }

    fn check_any(&self, branches: &[Link], value: &Value, outcome: &mut Outcome) {
        let mut best: Option<Outcome> = None;
        for branch in branches {
            let result = self.branch(branch, value);
            if result.problems.is_empty() {
                outcome.merge(result);
                return;
            }
            best = Some(better(best, result));
        }
        self.complain(outcome, "must validate at least one schema (anyOf)");
        if let Some(best) = best {
            outcome.merge(best);
        }
    }

    fn check_one(&self, branches: &[Link], value: &Value, outcome: &mut Outcome) {
        let mut best: Option<Outcome> = None;
        let mut valid = Vec::new();
        for branch in branches {
            let result = self.branch(branch, value);
            if result.problems.is_empty() {
                valid.push(result);
            } else if valid.is_empty() {
                best = Some(better(best, result));
            }
        }
        match valid.len() {
            0 => {
                let problem = "must validate one and only one schema (oneOf). Found none valid";
                self.complain(outcome, problem);
                if let Some(best) = best {
                    outcome.merge(best);
                }
            }
            1 => outcome.merge(valid.remove(0)),
            count => {
                let problem = format!(
                    "must validate one and only one schema (oneOf). Found {count} valid \
                     alternatives"
                );
                self.complain(outcome, &problem);
            }
        }
    }

    fn check_all(&self, branches: &[Link], value: &Value, outcome: &mut Outcome) {
        let mut valid = 0;
        for branch in branches {
            let result = self.branch(branch, value);
            valid += usize::from(result.problems.is_empty());
            outcome.merge(result);
        }
        if valid != branches.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            self.complain(outcome, &format!("must validate all the schemas (allOf){none}"));
        }
    }
}

fn better(best: Option<Outcome>, candidate: Outcome) -> Outcome {
    match best {
        Some(best) if candidate.matched <= best.matched => best,
        _ => candidate,
    }
}
