//! Names that follow from the name of the operator, so that two operators never collide.

use super::{DiffbaseStorageSetting, ProgressStorageSetting, Settings};

/// The domain of derived names.
const DOMAIN: &str = "kopf.dev";

impl Settings {
    /// Derives the finalizer, the prefix of annotations, the field manager and the name of the Lease
    /// from the name of the operator.
    ///
    /// By default they are those of Kopf, except for the Lease. Two operators that handle the same
    /// objects need different ones. To change them for objects that exist, keep the former
    /// finalizer and storages until all objects are handled.
    ///
    /// ```
    /// let mut settings = kopf_core::settings::Settings::default();
    /// settings.own_names("my-operator");
    /// assert_eq!(settings.persistence.finalizer, "my-operator.kopf.dev/finalizer");
    /// assert_eq!(settings.persistence.field_manager, "my-operator");
    /// ```
    pub fn own_names(&mut self, operator: &str) {
        let is_plain = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
        let plain: String =
            operator.to_lowercase().chars().map(|it| if is_plain(it) { it } else { '-' }).collect();
        let name = plain.trim_matches('-').to_owned();
        let prefix = format!("{name}.{DOMAIN}");
        self.persistence.finalizer = format!("{prefix}/finalizer");
        self.persistence.progress_storage =
            ProgressStorageSetting::Smart { prefix: prefix.clone(), name: name.clone() };
        self.persistence.diffbase_storage = DiffbaseStorageSetting::Compact {
            prefix,
            key: "last-handled-configuration".to_owned(),
        };
        self.persistence.field_manager.clone_from(&name);
        self.leadership.name = Some(name);
    }
}
