//! The kopf command: run, dev, cluster, new, manifests, explain; renders errors and hints.
