//! The defaults in the form in which `conformance/test_settings.py` compares them with Kopf's own.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;

/// The table that the comparison with Kopf reads.
const TABLE: &str = include_str!("../../../../conformance/settings.json");

fn seconds(duration: Duration) -> Value {
    match duration.subsec_nanos() {
        0 => json!(duration.as_secs()),
        _ => json!(duration.as_secs_f64()),
    }
}

fn all_seconds(durations: &[Duration]) -> Value {
    durations.iter().copied().map(seconds).collect()
}

fn all_texts(mapping: &SelectorMapping) -> Value {
    mapping.0.iter().map(|(selector, text)| (selector.to_string(), json!(text))).collect()
}

/// Every field is named without `..`, so that none can be forgotten here.
fn table(settings: Settings) -> Value {
    let Settings {
        process: Process { ultimate_exiting_timeout },
        posting,
        peering,
        // Kopf has nothing like these.
        leadership: _,
        snapshots: _,
        watching,
        queueing,
        scanning: Scanning { disabled },
        execution: Execution { default_backoff, max_workers, rerun_outdated },
        networking,
        persistence,
        background,
        admission: Admission { exempt_own_namespace },
        serving,
    } = settings;
    json!({
        "process": {"ultimate_exiting_timeout": ultimate_exiting_timeout.map(seconds)},
        "posting": table_of_posting(posting),
        "peering": table_of_peering(peering),
        "watching": table_of_watching(watching),
        "queueing": table_of_queueing(queueing),
        "scanning": {"disabled": disabled},
        "execution": {
            "default_backoff": seconds(default_backoff),
            "max_workers": max_workers,
            "rerun_outdated": rerun_outdated,
        },
        "networking": table_of_networking(networking),
        "persistence": table_of_persistence(persistence),
        "background": table_of_background(background),
        "admission": {"exempt_own_namespace": exempt_own_namespace},
        "serving": table_of_serving(serving),
    })
}

fn table_of_posting(posting: Posting) -> Value {
    let Posting {
        enabled,
        loggers,
        level,
        default_backoffs,
        logging_backoffs,
        worker_limit,
        idle_timeout,
        handlers,
        reporting_component,
        reporting_instance,
        event_name_prefix,
        rate_per_second,
        queue_max,
        count_repeated,
    } = posting;
    json!({
        "enabled": enabled,
        "loggers": loggers,
        "level": format!("{level:?}").to_lowercase(),
        "default_backoffs": all_seconds(&default_backoffs),
        "logging_backoffs": all_seconds(&logging_backoffs),
        "worker_limit": worker_limit,
        "idle_timeout": seconds(idle_timeout),
        "handlers": handlers,
        "reporting_component": reporting_component,
        "reporting_instance": reporting_instance,
        "event_name_prefix": event_name_prefix,
        "rate_per_second": rate_per_second,
        "queue_max": queue_max,
        "count_repeated": count_repeated,
    })
}

fn table_of_peering(peering: Peering) -> Value {
    let Peering { name, priority, lifetime, stealth, mandatory, standalone, clusterwide } = peering;
    json!({
        "name": name,
        "priority": priority,
        "lifetime": seconds(lifetime),
        "stealth": stealth,
        "mandatory": mandatory,
        "standalone": standalone,
        "clusterwide": clusterwide,
    })
}

fn table_of_watching(watching: Watching) -> Value {
    let Watching {
        server_timeout,
        client_timeout,
        connect_timeout,
        reconnect_backoff,
        reconnect_backoff_max,
        inactivity_timeout,
        chunk_size,
        initial_streaming,
        label_selectors,
        field_selectors,
        shard_selectors,
        backlog_max,
        managed_fields,
    } = watching;
    json!({
        "server_timeout": server_timeout.map(seconds),
        "client_timeout": client_timeout.map(seconds),
        "connect_timeout": connect_timeout.map(seconds),
        "reconnect_backoff": seconds(reconnect_backoff),
        "reconnect_backoff_max": seconds(reconnect_backoff_max),
        "inactivity_timeout": seconds(inactivity_timeout),
        "chunk_size": chunk_size,
        "initial_streaming": initial_streaming,
        "label_selectors": all_texts(&label_selectors),
        "field_selectors": all_texts(&field_selectors),
        "shard_selectors": all_texts(&shard_selectors),
        "backlog_max": backlog_max,
        "managed_fields": managed_fields,
    })
}

fn table_of_queueing(queueing: Queueing) -> Value {
    let Queueing { worker_limit, idle_timeout, exit_timeout, error_delays } = queueing;
    json!({
        "worker_limit": worker_limit,
        "idle_timeout": seconds(idle_timeout),
        "exit_timeout": seconds(exit_timeout),
        "error_delays": all_seconds(&error_delays),
    })
}

fn table_of_networking(networking: Networking) -> Value {
    let Networking {
        request_timeout,
        connect_timeout,
        error_backoffs,
        enforce_retry_after,
        trust_env,
        concurrent_writes_max,
    } = networking;
    json!({
        "request_timeout": seconds(request_timeout),
        "connect_timeout": connect_timeout.map(seconds),
        "error_backoffs": all_seconds(&error_backoffs),
        "enforce_retry_after": enforce_retry_after,
        "trust_env": trust_env,
        "concurrent_writes_max": concurrent_writes_max,
    })
}

fn table_of_persistence(persistence: Persistence) -> Value {
    let Persistence {
        finalizer,
        consistency_timeout,
        persist_after,
        progress_storage,
        diffbase_storage,
        field_manager,
    } = persistence;
    json!({
        "finalizer": finalizer,
        "consistency_timeout": seconds(consistency_timeout),
        "persist_after": seconds(persist_after),
        "progress_storage": format!("{progress_storage:?}"),
        "diffbase_storage": format!("{diffbase_storage:?}"),
        "field_manager": field_manager,
    })
}

fn table_of_background(background: Background) -> Value {
    let Background {
        cancellation_polling,
        instant_exit_timeout,
        instant_exit_zero_time_cycles,
        timer_spread_max,
    } = background;
    json!({
        "cancellation_polling": seconds(cancellation_polling),
        "instant_exit_timeout": instant_exit_timeout.map(seconds),
        "instant_exit_zero_time_cycles": instant_exit_zero_time_cycles,
        "timer_spread_max": seconds(timer_spread_max),
    })
}

fn table_of_serving(serving: Serving) -> Value {
    let Serving {
        connections_max,
        reserved_files,
        handshake_timeout,
        head_timeout,
        body_timeout,
        write_timeout,
        idle_timeout,
        head_bytes_max,
        review_bytes_max,
        conversion_bytes_max,
        buffered_bytes_max,
        liveness_timeout,
    } = serving;
    json!({
        "connections_max": connections_max,
        "reserved_files": reserved_files,
        "handshake_timeout": seconds(handshake_timeout),
        "head_timeout": seconds(head_timeout),
        "body_timeout": seconds(body_timeout),
        "write_timeout": seconds(write_timeout),
        "idle_timeout": seconds(idle_timeout),
        "head_bytes_max": head_bytes_max,
        "review_bytes_max": review_bytes_max,
        "conversion_bytes_max": conversion_bytes_max,
        "buffered_bytes_max": buffered_bytes_max,
        "liveness_timeout": seconds(liveness_timeout),
    })
}

#[test]
fn the_defaults_are_those_that_are_compared_with_kopf() {
    let compared: Value = serde_json::from_str(TABLE).expect("JSON");
    assert_eq!(table(Settings::default()), compared);
}

#[test]
fn selectors_apply_to_their_resources_in_order() {
    let mut mapping = SelectorMapping::default();
    for (name, text) in [("kopfexamples", "a=1"), ("pods", "b=2"), ("*", "c=3")] {
        mapping.insert(Selector::parse(&[name]).expect("a selector"), text);
    }
    let mut resource = crate::test_fixture::resource();
    resource.preferred = true;
    let found: Vec<&str> = mapping.collect(&resource).collect();
    assert_eq!(found, ["a=1", "c=3"]);
}

#[test]
fn ports_leave_file_descriptors_to_the_rest_of_the_process() {
    let serving = Serving::default();
    for (files, connections) in
        [(None, 1024), (Some(1 << 20), 1024), (Some(1024), 384), (Some(64), 16), (Some(1), 1)]
    {
        assert_eq!(serving.connections_per_port(2, files), connections, "{files:?}");
    }
}

/// The fields of all sections, with their comments, as `section.field`.
fn documented_fields() -> Vec<(String, String)> {
    let sources = [
        include_str!("../settings.rs"),
        include_str!("leadership.rs"),
        include_str!("snapshots.rs"),
    ];
    let (_, sections) = sources[0].split_once("pub struct Settings {").unwrap();
    let (sections, _) = sections.split_once("\n}").unwrap();
    let field = |line: &str| {
        let (name, kind) = line.trim().strip_prefix("pub ")?.split_once(": ")?;
        Some((name.to_owned(), kind.trim_end_matches(',').to_owned()))
    };
    let mut found = Vec::new();
    for (section, kind) in sections.lines().filter_map(field) {
        let start = format!("pub struct {kind} {{");
        let body = sources.iter().find_map(|source| source.split_once(&start)).unwrap().1;
        let mut comment = String::new();
        for line in body.split_once("\n}").unwrap().0.lines() {
            match field(line) {
                Some((name, _)) => {
                    found.push((format!("{section}.{name}"), std::mem::take(&mut comment)));
                }
                None => comment += line,
            }
        }
    }
    found
}

#[test]
fn every_setting_says_when_a_change_applies() {
    let fields = documented_fields();
    assert!(fields.len() > 70, "{}", fields.len());
    for (name, comment) in fields {
        let is_told = comment.contains("Changes apply ") || comment.contains("without effect");
        assert!(is_told, "{name}: {comment}");
    }
}

#[test]
fn every_setting_is_in_the_book_with_the_time_when_a_change_applies() {
    let book = include_str!("../../../../docs/src/reference/settings.md");
    for (name, _) in documented_fields() {
        let row =
            book.lines().find(|row| row.starts_with("| ") && row.contains(&format!("`{name}`")));
        let row = row.unwrap_or_else(|| panic!("{name} is not in the book"));
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert!(cells.len() == 6 && !cells[4].is_empty(), "{row}");
    }
}
