//! The parts of [`Settings`], for code that handles them separately.
//!
//! ```
//! use kopf::Settings;
//! use kopf::prelude::*;
//! use kopf::resource::Selector;
//! use kopf::settings::Level;
//!
//! #[kopf::on::startup]
//! async fn configure(settings: &mut Settings) -> Result {
//!     settings.posting.level = Level::Warning;
//!     let examples = Selector::parse(&["kopf.dev", "kopfexamples"])?;
//!     settings.watching.label_selectors.insert(examples, "tier=live");
//!     Ok(())
//! }
//! ```

pub use kopf_core::logtext::Level;
pub use kopf_core::settings::{
    Background, DiffbaseStorageSetting, Execution, Networking, Peering, Persistence, Posting,
    Process, ProgressStorageSetting, Queueing, Scanning, SelectorMapping, Serving, Settings,
    Watching,
};
