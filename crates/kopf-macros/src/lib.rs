//! Attributes and derives; emits paths into `kopf`.
