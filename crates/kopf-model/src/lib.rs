//! Values: keys, objects, selectors, diffs, patches, essences and stored records; no I/O, no async.
