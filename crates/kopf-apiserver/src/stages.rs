//! Pod life as scriptable stages.
