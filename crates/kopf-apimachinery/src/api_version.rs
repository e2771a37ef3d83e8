//! `apiVersion`: a group and a version in one string.

/// `group/version`, or the bare version in the core group.
pub fn join_api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { [group, "/", version].concat() }
}

/// Splits `group/version` into its parts; the core group has no slash.
pub fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}
