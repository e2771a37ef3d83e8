//! Rules of cron jobs.

use serde_json::Value;

use super::{Problems, go_text, jobs};
use crate::fields::text;

/// The suffixes of jobs have eleven characters.
const NAME_LENGTH_MAX: usize = 52;

/// The errors of a cron job; an update may keep values that were valid before.
pub(super) fn check(object: &Value, old: Option<&Value>, problems: &mut Problems) {
    let spec = &object["spec"];
    let old_spec = old.map(|old| &old["spec"]);
    schedule(spec, old_spec, problems);
    problems.not_negative("spec.startingDeadlineSeconds", &spec["startingDeadlineSeconds"]);
    if let Some(zone) = spec["timeZone"].as_str()
        && old_spec.is_none_or(|old| old["timeZone"] != spec["timeZone"])
    {
        time_zone(zone, problems);
    }
    let policies = ["Allow", "Forbid", "Replace"];
    problems.one_of("spec.concurrencyPolicy", &spec["concurrencyPolicy"], &policies);
    let job = &spec["jobTemplate"]["spec"];
    jobs::spec(job, "spec.jobTemplate.spec", problems);
    if !job["selector"].is_null() {
        let shown = go_text::label_selector(&job["selector"]);
        let detail = "`selector` will be auto-generated";
        problems.invalid_text("spec.jobTemplate.spec.selector", &shown, detail);
    }
    if job["manualSelector"] == true {
        let path = "spec.jobTemplate.spec.manualSelector";
        problems.one_of(path, &job["manualSelector"], &["nil", "false"]);
    }
    for field in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        problems.not_negative(&format!("spec.{field}"), &spec[field]);
    }
    if old.is_none() && text(&object["metadata"], "name").len() > NAME_LENGTH_MAX {
        let detail = format!("must be no more than {NAME_LENGTH_MAX} characters");
        problems.invalid("metadata.name", &object["metadata"]["name"], &detail);
    }
}

fn schedule(spec: &Value, old: Option<&Value>, problems: &mut Problems) {
    let schedule = text(spec, "schedule");
    if schedule.is_empty() {
        problems.required("spec.schedule", "");
        return;
    }
    if let Err(problem) = parse_schedule(schedule) {
        problems.invalid("spec.schedule", &spec["schedule"], &problem);
    }
    let had_zone = old.is_some_and(|old| text(old, "schedule").contains("TZ"));
    if !schedule.contains("TZ") {
        return;
    }
    if !had_zone {
        let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        problems.invalid("spec.schedule", &spec["schedule"], detail);
    } else if !spec["timeZone"].is_null() {
        let detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
        problems.invalid("spec.schedule", &spec["schedule"], detail);
    }
}

/// Parses a schedule of five fields, with the errors of upstream's parser.
fn parse_schedule(text: &str) -> Result<(), String> {
    let text = match text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ=")) {
        Some(rest) => rest.split_once(' ').map_or("", |(_, schedule)| schedule.trim()),
        None => text,
    };
    if let Some(descriptor) = text.strip_prefix('@') {
        let known = ["yearly", "annually", "monthly", "weekly", "daily", "midnight", "hourly"];
        let is_interval = descriptor.starts_with("every ");
        return match known.contains(&descriptor) || is_interval {
            true => Ok(()),
            false => Err(format!("unrecognized descriptor: {text}")),
        };
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != 5 {
        return Err(format!("expected exactly 5 fields, found {}: [{text}]", fields.len()));
    }
    let bounds = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)];
    for ((index, field), (least, most)) in fields.iter().enumerate().zip(bounds) {
        for part in field.split(',') {
            check_range(part, index, least, most)?;
        }
    }
    Ok(())
}

fn check_range(text: &str, index: usize, least: u32, most: u32) -> Result<(), String> {
    let (range, step) = match text.split_once('/') {
        Some((range, step)) => (range, Some(step)),
        None => (text, None),
    };
    let number = |text: &str| -> Result<u32, String> {
        const MONTHS: [&str; 12] =
            ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
        const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
        let lower = text.to_lowercase();
        let named = match index {
            3 => MONTHS.iter().position(|name| *name == lower).map(|at| at + 1),
            4 => DAYS.iter().position(|name| *name == lower),
            _ => None,
        };
        if let Some(number) = named {
            return Ok(u32::try_from(number).unwrap_or_default());
        }
        text.parse().map_err(|_| {
            format!(
                "failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax"
            )
        })
    };
    let (start, end) = match range {
        "*" | "?" => (least, most),
        _ => match range.split_once('-') {
            Some((start, end)) => (number(start)?, number(end)?),
            None if step.is_some() => (number(range)?, most),
            None => (number(range)?, number(range)?),
        },
    };
    if let Some(step) = step
        && number(step)? == 0
    {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    if start < least {
        return Err(format!("beginning of range ({start}) below minimum ({least}): {text}"));
    }
    if end > most {
        return Err(format!("end of range ({end}) above maximum ({most}): {text}"));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
    }
    Ok(())
}

fn time_zone(zone: &str, problems: &mut Problems) {
    const PART_LENGTH_MAX: usize = 14;
    let path = "spec.timeZone";
    let value = Value::from(zone);
    if zone.is_empty() {
        problems.invalid(path, &value, "timeZone must be nil or non-empty string");
        return;
    }
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte);
    let is_odd = |part: &str| {
        matches!(part, "" | "." | "..")
            || part.starts_with('-')
            || part.len() > PART_LENGTH_MAX
            || !part.bytes().all(is_legal)
    };
    let unknown = format!("unknown time zone {zone}");
    if zone.split('/').any(is_odd) {
        problems.invalid(path, &value, &unknown);
        return;
    }
    let is_local = zone.eq_ignore_ascii_case("Local");
    if is_local {
        let detail = "timeZone must be an explicit time zone as defined in \
                      https://www.iana.org/time-zones";
        problems.invalid(path, &value, detail);
    }
    if zone != "Local" && jiff::tz::TimeZone::get(zone).is_err() {
        problems.invalid(path, &value, &unknown);
    }
}
