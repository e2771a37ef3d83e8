//! The syntax of names, label keys and label values, with upstream's error messages.

/// The problem with the name of an object of this resource, if any.
pub fn name_problem(group: &str, resource: &str, name: &str, prefix: bool) -> Vec<String> {
    // A generated name may end in a dash, since a suffix follows.
    let masked = match name.strip_suffix('-') {
        Some(rest) if prefix => format!("{rest}a"),
        _ => name.to_owned(),
    };
    match (group, resource) {
        ("rbac.authorization.k8s.io", _) | ("apiregistration.k8s.io", _) => {
            path_segment_problems(&masked)
        }
        // Prefixes of events, whose names have a number after a dot, are only parts of URLs.
        ("" | "events.k8s.io", "events") if prefix => path_segment_problems(name),
        ("", "namespaces") | ("apps", "statefulsets") => label_problems(&masked),
        ("networking.k8s.io", "ipaddresses") => address_problems(name),
        ("", "services") => dns1035_problems(&masked),
        _ => subdomain_problems(&masked),
    }
}

const LABEL_LENGTH_MAX: usize = 63;
const SUBDOMAIN_LENGTH_MAX: usize = 253;

/// The problems with a name that is part of a URL, if any.
pub fn path_segment_problems(name: &str) -> Vec<String> {
    if matches!(name, "." | "..") {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"]
        .into_iter()
        .filter(|illegal| name.contains(illegal))
        .map(|illegal| format!("may not contain '{illegal}'"))
        .collect()
}

/// The problems with a DNS subdomain, if any.
pub fn subdomain_problems(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > SUBDOMAIN_LENGTH_MAX {
        problems.push(format!("must be no more than {SUBDOMAIN_LENGTH_MAX} characters"));
    }
    if !name.split('.').all(is_dns_label) {
        problems.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '-' or '.', and must start and end with an alphanumeric character (e.g. \
             'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    problems
}

/// The problems with a DNS subdomain that may have underscores, if any.
pub fn underscored_subdomain_problems(name: &str) -> Vec<String> {
    let is_part = |part: &str| {
        !part.is_empty() && part.split('_').all(|it| it.is_empty() || is_dns_label(it))
    };
    let mut problems = Vec::new();
    if name.len() > SUBDOMAIN_LENGTH_MAX {
        problems.push(format!("must be no more than {SUBDOMAIN_LENGTH_MAX} characters"));
    }
    if !name.split('.').all(is_part) {
        problems.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '_', '-' or '.', and must start and end with an alphanumeric character (e.g. \
             'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    problems
}

/// The problems with the name of an address object, which is the address itself.
fn address_problems(name: &str) -> Vec<String> {
    use std::net::IpAddr;
    const DETAIL: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
    // Rust, as Go, does not parse IPv4 addresses with leading zeros.
    let without_zeros: Vec<&str> = name
        .split('.')
        .map(|part| part.trim_start_matches('0'))
        .map(|part| if part.is_empty() { "0" } else { part })
        .collect();
    let is_parsed = name.parse::<IpAddr>();
    match (is_parsed, without_zeros.join(".").parse::<IpAddr>()) {
        (Err(_), Ok(_)) if !name.contains(':') => vec!["must not have leading 0s".to_owned()],
        (Err(_), _) => vec![DETAIL.to_owned()],
        (Ok(address), _) if address.to_string() != name => {
            vec![format!("must be in canonical form (\"{address}\")")]
        }
        (Ok(_), _) => Vec::new(),
    }
}

/// The problems with a DNS label, if any.
pub fn label_problems(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.contains('.') && name.split('.').all(is_dns_label) {
        return vec!["must not contain dots".to_owned()];
    }
    if name.len() > LABEL_LENGTH_MAX {
        problems.push(format!("must be no more than {LABEL_LENGTH_MAX} characters"));
    }
    if !is_dns_label(name) {
        problems.push(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \
             '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or \
             '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    problems
}

fn dns1035_problems(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > LABEL_LENGTH_MAX {
        problems.push(format!("must be no more than {LABEL_LENGTH_MAX} characters"));
    }
    if !is_dns_label(name) || !name.starts_with(|first: char| first.is_ascii_lowercase()) {
        problems.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start \
             with an alphabetic character, and end with an alphanumeric character (e.g. \
             'my-name',  or 'abc-123', regex used for validation is \
             '[a-z]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    problems
}

fn is_dns_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// Checks that a text is a valid label value.
pub fn check_label_value(value: &str) -> Result<(), String> {
    if value.len() > LABEL_LENGTH_MAX {
        return Err(format!("must be no more than {LABEL_LENGTH_MAX} characters"));
    }
    if value.is_empty() || is_qualified_part(value) {
        return Ok(());
    }
    Err("a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
         '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or \
         'my_value',  or '12345', regex used for validation is \
         '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
        .to_owned())
}

/// All problems with a qualified name. An empty last part is reported twice.
pub fn qualified_name_problems(key: &str) -> Vec<String> {
    let Err(problem) = check_qualified_name(key) else { return Vec::new() };
    let mut problems = vec![problem];
    if key.is_empty() || (key.ends_with('/') && key.matches('/').count() == 1) {
        problems.extend(check_qualified_name("-").err());
    }
    problems
}

/// Checks that a text is a valid label key, annotation key or finalizer: `[prefix/]name`.
pub fn check_qualified_name(key: &str) -> Result<(), String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if name.contains('/') {
        return Err("a qualified name must consist of alphanumeric characters, '-', '_' or '.', \
             and must start and end with an alphanumeric character (e.g. 'MyName',  or \
             'my.name',  or '123-abc', regex used for validation is \
             '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix \
             and '/' (e.g. 'example.com/MyName')"
            .to_owned());
    }
    if let Some(prefix) = prefix {
        if prefix.is_empty() {
            return Err("prefix part must be non-empty".to_owned());
        }
        if let Some(problem) = subdomain_problems(prefix).into_iter().next() {
            return Err(format!("prefix part {problem}"));
        }
    }
    if name.is_empty() {
        return Err("name part must be non-empty".to_owned());
    }
    if name.len() > LABEL_LENGTH_MAX {
        return Err(format!("name part must be no more than {LABEL_LENGTH_MAX} characters"));
    }
    if is_qualified_part(name) {
        return Ok(());
    }
    Err("name part must consist of alphanumeric characters, '-', '_' or '.', and must start and \
         end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex \
         used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
        .to_owned())
}

fn is_qualified_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    let outer = |byte: &u8| byte.is_ascii_alphanumeric();
    bytes.first().is_some_and(outer)
        && bytes.last().is_some_and(outer)
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}
