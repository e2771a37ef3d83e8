//! The Pods of a run: their names, labels and scripts. Pure.

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use crate::TestSpec;

/// The label with the number of the run.
pub const RUN_LABEL: &str = "example.org/run";

/// Sends the requests one after another, prints the status and the duration of each, and fails at
/// the end if any of them failed. All values come from the environment, so they cannot be executed
/// as code.
const SCRIPT: &str = r#"
sent=0
failed=0
while [ "$sent" -lt "$REPEAT" ]; do
  curl --silent --show-error --fail --max-time 30 --output /dev/null \
    --write-out '%{http_code} %{time_total}\n' --request "$METHOD" "http://$SERVICE$URL_PATH" \
    || failed=$((failed + 1))
  sent=$((sent + 1))
done
echo "$sent requests, $failed failed"
[ "$failed" -eq 0 ]
"#;

/// One Pod, without the fields that its owner adds.
pub(crate) fn template(test: &str, run: i64, number: u32, spec: &TestSpec) -> Pod {
    let environment = [
        ("METHOD", spec.method.clone()),
        ("SERVICE", spec.service_name.clone()),
        ("URL_PATH", spec.path.clone()),
        ("REPEAT", spec.repeat.to_string()),
    ];
    let environment = environment.map(|(name, value)| json!({"name": name, "value": value}));
    let pod = json!({
        "metadata": {
            "name": format!("{test}-{run}-{number}"),
            "labels": {RUN_LABEL: run.to_string()},
        },
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "load",
                "image": "curlimages/curl:8.11.1",
                "command": ["sh", "-c", SCRIPT],
                "env": environment,
                "terminationMessagePolicy": "FallbackToLogsOnError",
            }],
        },
    });
    serde_json::from_value(pod).expect("the template is a Pod")
}
