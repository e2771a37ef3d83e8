//! The string formats that validation understands; unknown formats are ignored, as upstream does.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::LazyLock;

use base64::Engine;
use regex::Regex;

/// Whether validation supports this format.
pub(super) fn is_supported(format: &str) -> bool {
    const FORMATS: [&str; 26] = [
        "bsonobjectid",
        "uri",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "cidr",
        "mac",
        "uuid",
        "uuid3",
        "uuid4",
        "uuid5",
        "isbn",
        "isbn10",
        "isbn13",
        "creditcard",
        "ssn",
        "hexcolor",
        "rgbcolor",
        "byte",
        "password",
        "date",
        "duration",
        "datetime",
        "k8sshortname",
        "k8slongname",
    ];
    FORMATS.contains(&format.replace('-', "").as_str())
}

/// Whether the text has the format.
pub(super) fn matches(format: &str, text: &str) -> bool {
    match format.replace('-', "").as_str() {
        "bsonobjectid" => text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "uri" => is_request_uri(text),
        "email" => is_email(text),
        "hostname" => HOSTNAME.is_match(text),
        "ipv4" => is_ipv4(text),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "mac" => is_mac(text),
        "uuid" => UUID.is_match(text),
        "uuid3" => UUID3.is_match(text),
        "uuid4" => UUID4.is_match(text),
        "uuid5" => UUID5.is_match(text),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "creditcard" => is_credit_card(text),
        "ssn" => SSN.is_match(text),
        "hexcolor" => HEX_COLOR.is_match(text),
        "rgbcolor" => RGB_COLOR.is_match(text),
        "byte" => !text.is_empty() && is_base64(text),
        "date" => is_date(text),
        "duration" => is_duration(text),
        "datetime" => is_date_time(text),
        "k8sshortname" => text.len() <= 63 && DNS_LABEL.is_match(text),
        "k8slongname" => text.len() <= 253 && DNS_SUBDOMAIN.is_match(text),
        _ => true,
    }
}

/// Whether Go's RFC 3339 parser accepts the text.
pub(super) fn is_rfc3339(text: &str) -> bool {
    text.parse::<jiff::Timestamp>().is_ok() && text.contains('T')
}

/// Whether the text is a quantity: `100m`, `1.5Gi`, `2e3`.
pub(crate) fn is_quantity(text: &str) -> bool {
    QUANTITY.is_match(text)
}

/// Whether the text is standard base64 with padding.
pub(super) fn is_base64(text: &str) -> bool {
    let plain: String =
        text.chars().filter(|character| !matches!(character, '\n' | '\r')).collect();
    base64::engine::general_purpose::STANDARD.decode(plain).is_ok()
}

/// Whether the byte may occur in base64.
pub(super) fn is_base64_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'\n' | b'\r')
}

macro_rules! pattern {
    ($name:ident, $text:expr) => {
        static $name: LazyLock<Regex> =
            LazyLock::new(|| Regex::new($text).expect("a constant pattern compiles"));
    };
}

pattern!(
    QUANTITY,
    r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(([KMGTPE]i)|[numkMGTPE]|([eE][+-]?[0-9]+))?$"
);
pattern!(
    HOSTNAME,
    r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$"
);
pattern!(UUID, r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$");
pattern!(UUID3, r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$");
pattern!(UUID4, r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$");
pattern!(UUID5, r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$");
pattern!(SSN, r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$");
pattern!(HEX_COLOR, r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$");
pattern!(
    RGB_COLOR,
    r"^rgb\(\s*(0|[1-9][0-9]?|1[0-9][0-9]|2[0-4][0-9]|25[0-5])\s*,\s*(0|[1-9][0-9]?|1[0-9][0-9]|2[0-4][0-9]|25[0-5])\s*,\s*(0|[1-9][0-9]?|1[0-9][0-9]|2[0-4][0-9]|25[0-5])\s*\)$"
);
pattern!(DNS_LABEL, r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$");
pattern!(DNS_SUBDOMAIN, r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$");
pattern!(TIME_OF_DAY, r"([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))");
pattern!(
    LONG_DURATION,
    r"([0-9]+)\s*(nanoseconds?|nanos?|microseconds?|micros?|milliseconds?|millis?|seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|wk|us|µs|ms|ns|s|m|h|d|w)"
);
pattern!(GO_DURATION, r"^[-+]?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$");
pattern!(
    CARD,
    r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$"
);

fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.chars().any(|character| character.is_control() || character == ' ') {
        return false;
    }
    if text.starts_with('/') || text == "*" {
        return true;
    }
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let mut letters = scheme.bytes();
    let starts_well = letters.next().is_some_and(|byte| byte.is_ascii_alphabetic());
    let continues = letters.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    starts_well && continues && !rest.is_empty()
}

fn is_email(text: &str) -> bool {
    let address = match (text.rfind('<'), text.ends_with('>')) {
        (Some(start), true) => &text[start + 1..text.len() - 1],
        _ => text.trim(),
    };
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let fits = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && !part.ends_with('.')
            && !part.contains("..")
            && !part
                .chars()
                .any(|character| character.is_whitespace() || "<>,;:\\\"()".contains(character))
    };
    fits(local) && !local.contains('@') && fits(domain)
}

/// Upstream tolerates leading zeros.
fn is_ipv4(text: &str) -> bool {
    let is_octet = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && part.parse::<u32>().is_ok_and(|octet| octet <= 255)
    };
    text.split('.').count() == 4 && text.split('.').all(is_octet)
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let Ok(address) = address.parse::<IpAddr>() else { return false };
    let is_digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    let max = if address.is_ipv4() { 32 } else { 128 };
    is_digits && length.parse::<u32>().is_ok_and(|length| length <= max)
}

fn is_mac(text: &str) -> bool {
    let groups: Vec<&str> = if text.contains('.') {
        text.split('.').collect()
    } else if text.contains('-') {
        text.split('-').collect()
    } else {
        text.split(':').collect()
    };
    let width = if text.contains('.') { 4 } else { 2 };
    let is_group =
        |group: &&str| group.len() == width && group.bytes().all(|byte| byte.is_ascii_hexdigit());
    matches!(groups.len() * width / 2, 6 | 8 | 20) && groups.iter().all(is_group)
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let Some((date, time)) = lower.split_once('t') else { return false };
    let Some(found) = TIME_OF_DAY.captures(time) else { return false };
    is_date(date) && &found[1] <= "23" && &found[2] <= "59" && &found[3] <= "59"
}

fn is_duration(text: &str) -> bool {
    if GO_DURATION.is_match(text) {
        return true;
    }
    let rest = LONG_DURATION.replace_all(text, "");
    rest.trim().is_empty() && !text.trim().is_empty()
}

fn is_isbn10(text: &str) -> bool {
    let digits: Vec<u32> = text
        .chars()
        .filter(|character| !matches!(character, '-' | ' '))
        .enumerate()
        .map(|(at, character)| match character {
            'X' if at == 9 => 10,
            digit => digit.to_digit(10).unwrap_or(1000),
        })
        .collect();
    let sum: u32 = digits.iter().enumerate().map(|(at, digit)| (at as u32 + 1) * digit).sum();
    digits.len() == 10 && digits.iter().all(|digit| *digit <= 10) && sum.is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits: Vec<u32> = text
        .chars()
        .filter(|character| !matches!(character, '-' | ' '))
        .map(|character| character.to_digit(10).unwrap_or(1000))
        .collect();
    let weight = |at: usize| if at.is_multiple_of(2) { 1 } else { 3 };
    let sum: u32 = digits.iter().enumerate().map(|(at, digit)| weight(at) * digit).sum();
    digits.len() == 13 && digits.iter().all(|digit| *digit <= 9) && sum.is_multiple_of(10)
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let luhn = |(at, digit): (usize, u32)| match (at % 2, digit * 2) {
        (0, _) => digit,
        (_, doubled) if doubled > 9 => doubled - 9,
        (_, doubled) => doubled,
    };
    let reversed = digits.chars().rev().filter_map(|digit| digit.to_digit(10)).enumerate();
    CARD.is_match(&digits) && reversed.map(luhn).sum::<u32>().is_multiple_of(10)
}
