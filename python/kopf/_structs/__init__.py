"""Data structures: objects, views, diffs, patches, references, credentials."""
