//! Schedules of CronJobs: five fields, or a word such as `@hourly`.
//!
//! Pure. As in cron, if both the day of the month and the day of the week are restricted, a day
//! matches if either of them does.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan, Zoned};

/// How many days are searched for a match: rare days occur at least every 28 years.
const DAYS_MAX: usize = 366 * 28;

/// A cron schedule.
#[derive(Debug, Clone)]
pub(super) struct Schedule {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    has_days: bool,
    has_weekdays: bool,
    zone: TimeZone,
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

impl Schedule {
    /// Parses a schedule; `None` if it or its time zone is invalid.
    pub(super) fn parse(text: &str, zone: &str) -> Option<Self> {
        let text = match text.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        let (prefixed, text) = match text.split_once(' ') {
            Some((first, rest)) => match first.split_once('=') {
                Some(("TZ" | "CRON_TZ", zone)) => (zone, rest.trim_start()),
                _ => ("", text),
            },
            None => ("", text),
        };
        let zone = match (zone, prefixed) {
            ("", "") => TimeZone::UTC,
            ("", name) | (name, _) => TimeZone::get(name).ok()?,
        };
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields.as_slice() else { return None };
        let is_open = |field: &str| field.starts_with('*') || field.starts_with('?');
        // Sunday is both 0 and 7.
        let week = field(weekdays, 0, 7, &WEEKDAYS, 0)?;
        Some(Self {
            minutes: field(minutes, 0, 59, &[], 0)?,
            hours: field(hours, 0, 23, &[], 0)?,
            days: field(days, 1, 31, &[], 0)?,
            months: field(months, 1, 12, &MONTHS, 1)?,
            weekdays: week | (week >> 7) & 1,
            has_days: !is_open(days),
            has_weekdays: !is_open(weekdays),
            zone,
        })
    }

    /// The first start after a moment.
    pub(super) fn next_after(&self, moment: Timestamp) -> Option<Timestamp> {
        let start = moment.to_zoned(self.zone.clone());
        let next_minute = start.datetime().with().second(0).subsec_nanosecond(0).build().ok()?;
        let mut local = next_minute.checked_add(1.minute()).ok()?;
        for _ in 0..DAYS_MAX {
            if !self.fits_day(local) {
                local = next_day(local)?;
                continue;
            }
            match self.first_of_day(local) {
                Some(found) => {
                    let found = self.moment(found)?;
                    // When clocks are set back, some times occur twice.
                    if found > moment {
                        return Some(found);
                    }
                    local = local.checked_add(1.minute()).ok()?;
                }
                None => local = next_day(local)?,
            }
        }
        None
    }

    /// The last start after `since` and not after `until`.
    pub(super) fn latest_between(&self, since: Timestamp, until: Timestamp) -> Option<Timestamp> {
        /// Enough for a schedule of every minute that was not checked for two months.
        const STARTS_MAX: usize = 100_000;
        let mut latest = None;
        let mut from = since;
        for _ in 0..STARTS_MAX {
            match self.next_after(from) {
                Some(next) if next <= until => {
                    latest = Some(next);
                    from = next;
                }
                _ => break,
            }
        }
        latest
    }

    fn moment(&self, local: DateTime) -> Option<Timestamp> {
        let zoned: Zoned = self.zone.to_ambiguous_zoned(local).compatible().ok()?;
        Some(zoned.timestamp())
    }

    fn fits_day(&self, local: DateTime) -> bool {
        let has = |set: u64, number: i8| set >> number & 1 == 1;
        let day = has(self.days, local.day());
        let weekday = has(self.weekdays, local.weekday().to_sunday_zero_offset());
        let fits = match self.has_days && self.has_weekdays {
            true => day || weekday,
            false => day && weekday,
        };
        has(self.months, local.month()) && fits
    }

    /// The first matching time of a day, from the given one on.
    fn first_of_day(&self, local: DateTime) -> Option<DateTime> {
        let from = i64::from(local.hour()) * 60 + i64::from(local.minute());
        let fits = |minute: &i64| {
            self.hours >> (minute / 60) & 1 == 1 && self.minutes >> (minute % 60) & 1 == 1
        };
        let minute = (from..24 * 60).find(fits)?;
        let time = Span::new().try_minutes(minute).ok()?;
        local.date().to_datetime(jiff::civil::Time::midnight()).checked_add(time).ok()
    }
}

fn next_day(local: DateTime) -> Option<DateTime> {
    let tomorrow = local.date().checked_add(1.day()).ok()?;
    Some(tomorrow.to_datetime(jiff::civil::Time::midnight()))
}

/// One field as a set of bits; names count from `first_name`.
fn field(text: &str, least: u32, most: u32, names: &[&str], first_name: u32) -> Option<u64> {
    let number = |text: &str| -> Option<u32> {
        let lower = text.to_lowercase();
        let named = names.iter().position(|name| *name == lower);
        let number = match named {
            Some(index) => u32::try_from(index).ok()? + first_name,
            None => text.parse().ok()?,
        };
        (least..=most).contains(&number).then_some(number)
    };
    let mut set = 0;
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(step.parse::<u32>().ok().filter(|it| *it > 0)?)),
            None => (part, None),
        };
        let (from, to) = match range {
            "*" | "?" => (least, most),
            _ => match range.split_once('-') {
                Some((from, to)) => (number(from)?, number(to)?),
                None => {
                    let only = number(range)?;
                    (only, if step.is_some() { most } else { only })
                }
            },
        };
        if from > to {
            return None;
        }
        let step = usize::try_from(step.unwrap_or(1)).ok()?;
        set |= (from..=to).step_by(step).fold(0, |set, number| set | 1 << number);
    }
    Some(set)
}

#[cfg(test)]
mod tests;
