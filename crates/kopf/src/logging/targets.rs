//! The names of the framework's parts in log lines: short and stable across versions.
//!
//! The crates log with their module paths, which change; users search and filter by these names.

/// Prefixes of module paths and the names shown for them; the first match wins.
const NAMES: [(&str, &str); 17] = [
    ("kopf_engine::admission", "kopf.admission"),
    ("kopf_engine::attempt::activities", "kopf.activities"),
    ("kopf_engine::cluster_view", "kopf.watching"),
    ("kopf_engine::operator::peering", "kopf.peering"),
    ("kopf_engine::reporting::poster", "kopf.posting"),
    ("kopf_engine::reactor::lost_events", "kopf.objects"),
    ("kopf_engine::reactor", "kopf.watching"),
    ("kopf_engine::serving", "kopf.serving"),
    ("kopf_engine::watching", "kopf.watching"),
    // Everything else in the engine is about objects.
    ("kopf_engine", "kopf.objects"),
    ("kopf_client::login", "kopf.login"),
    ("kopf_client::secrets", "kopf.login"),
    ("kopf_client::service_account", "kopf.login"),
    ("kopf_client::vault", "kopf.login"),
    ("kopf_client::watch", "kopf.watching"),
    ("kopf_client", "kopf.requests"),
    ("kopf_", "kopf"),
];

/// Returns the source that is shown in a line.
pub(super) fn shown(target: &str) -> &str {
    let known = NAMES.iter().find(|(path, _)| target.starts_with(path));
    known.map_or(target, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    //! Tests that names are shown instead of module paths.

    use super::shown;

    #[test]
    fn paths_of_modules_are_not_shown() {
        for (target, name) in [
            ("kopf_engine::reactor::intake", "kopf.watching"),
            ("kopf_engine::watching::discovery", "kopf.watching"),
            ("kopf_engine::cycle::apply", "kopf.objects"),
            ("kopf_engine::admission::configuration", "kopf.admission"),
            ("kopf_client::cluster", "kopf.requests"),
            ("kopf_client::vault", "kopf.login"),
            ("kopf_core::convert", "kopf"),
            ("kopf.objects", "kopf.objects"),
            ("my_operator::handlers", "my_operator::handlers"),
        ] {
            assert_eq!(shown(target), name, "{target}");
        }
    }
}
