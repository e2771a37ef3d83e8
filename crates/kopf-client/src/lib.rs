//! The only door to a cluster: login, discovery, list, watch with watchdog, patch, events.
