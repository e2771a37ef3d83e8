//! The Pod Security Standards: what each level forbids.
//!
//! Pure. Checks have upstream's order and messages.

use serde_json::Value;

use crate::fields::{at, flag, items, number, text, texts};

/// A violation: a title and the containers or fields that caused it.
struct Violation {
    title: String,
    details: String,
}

/// The version of the standards: the minor number of a Kubernetes release.
pub(super) type Version = u32;

/// The violations of a pod, in full sentences.
pub(super) fn violations(pod: &Value, is_restricted: bool, version: Version) -> Vec<String> {
    let all = all(pod, is_restricted, version).into_iter();
    all.map(|Violation { title, details }| format!("{title} ({details})")).collect()
}

/// The violations of a pod, titles only.
pub(super) fn titles(pod: &Value, is_restricted: bool, version: Version) -> Vec<String> {
    all(pod, is_restricted, version).into_iter().map(|violation| violation.title).collect()
}

type Check = fn(&Pod<'_>) -> Option<(String, String)>;

/// A check, and the versions and operating systems that it applies to.
struct Rule {
    check: Check,
    since: Version,
    /// Whether Windows pods are exempt, which is the case since 1.25.
    spares_windows: bool,
}

const fn rule(check: Check, since: Version) -> Rule {
    Rule { check, since, spares_windows: false }
}

const fn linux_rule(check: Check, since: Version) -> Rule {
    Rule { check, since, spares_windows: true }
}

/// The checks of both levels, and the version until which they are not part of a stricter check.
const BASELINE: [(Rule, Version); 11] = [
    (rule(app_armor, 0), Version::MAX),
    (rule(capabilities, 0), 22),
    (rule(host_namespaces, 0), Version::MAX),
    (rule(host_paths, 0), 0),
    (rule(host_ports, 0), Version::MAX),
    (rule(privileged, 0), Version::MAX),
    (rule(proc_mount, 0), Version::MAX),
    (rule(se_linux, 0), Version::MAX),
    (rule(seccomp, 0), 19),
    (rule(sysctls, 0), Version::MAX),
    (rule(host_process, 0), Version::MAX),
];
/// The additional checks of the restricted level.
const RESTRICTED: [Rule; 6] = [
    linux_rule(escalation, 8),
    linux_rule(dropped_capabilities, 22),
    rule(volumes, 0),
    rule(not_root, 0),
    rule(root_user, 23),
    linux_rule(seccomp_required, 19),
];

fn all(pod: &Value, is_restricted: bool, version: Version) -> Vec<Violation> {
    const WINDOWS_SINCE: Version = 25;
    let pod = Pod { content: pod, version };
    let is_spared = version >= WINDOWS_SINCE && text(pod.spec(), &["os", "name"]) == "windows";
    let common = BASELINE.iter().filter(|(_, until)| !is_restricted || version < *until);
    let strict = RESTRICTED.iter().filter(|_| is_restricted);
    let rules = common.map(|(rule, _)| rule).chain(strict);
    let rules = rules.filter(|rule| version >= rule.since && !(is_spared && rule.spares_windows));
    let found = rules.filter_map(|rule| (rule.check)(&pod));
    found.map(|(title, details)| Violation { title, details }).collect()
}

struct Pod<'a> {
    content: &'a Value,
    version: Version,
}

impl<'a> Pod<'a> {
    fn spec(&self) -> &'a Value {
        &self.content["spec"]
    }

    /// Initial, regular and ephemeral containers.
    fn containers(&self) -> impl Iterator<Item = &'a Value> {
        let lists = ["initContainers", "containers", "ephemeralContainers"];
        lists.into_iter().flat_map(|list| items(self.content, &["spec", list]))
    }

    /// The names of the containers for which a predicate holds.
    fn named(&self, holds: impl Fn(&Value) -> bool) -> Vec<&'a str> {
        self.containers().filter(|one| holds(one)).map(|one| text(one, &["name"])).collect()
    }
}

/// `container "a"` or `containers "a", "b"`.
fn containers(names: &[&str]) -> String {
    let plural = if names.len() == 1 { "" } else { "s" };
    format!("container{plural} {}", quoted(names))
}

fn quoted(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    quoted.join(", ")
}

fn of_containers(title: &str, names: &[&str], tail: &str) -> Option<(String, String)> {
    (!names.is_empty()).then(|| (title.to_owned(), format!("{} {tail}", containers(names))))
}

fn escalation(pod: &Pod<'_>) -> Option<(String, String)> {
    let names = pod.named(|one| {
        at(one, &["securityContext", "allowPrivilegeEscalation"]) != Some(&Value::Bool(false))
    });
    let tail = "must set securityContext.allowPrivilegeEscalation=false";
    of_containers("allowPrivilegeEscalation != false", &names, tail)
}

/// The capabilities that containers add beyond the allowed ones.
fn added<'a>(pod: &Pod<'a>, allowed: &[&str]) -> (Vec<&'a str>, Vec<&'a str>) {
    let own = |one: &'a Value| texts(one, &["securityContext", "capabilities", "add"]);
    let is_more = |name: &&str| !allowed.contains(name);
    let names = pod.containers().filter(|one| own(one).iter().any(is_more));
    let names = names.map(|one| text(one, &["name"])).collect();
    let mut added: Vec<&str> =
        pod.containers().flat_map(own).filter(|name| is_more(name)).collect();
    added.sort_unstable();
    added.dedup();
    (names, added)
}

fn capabilities(pod: &Pod<'_>) -> Option<(String, String)> {
    const ALLOWED: [&str; 14] = [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
        "",
    ];
    let (names, added) = added(pod, &ALLOWED);
    let tail = format!("must not include {} in securityContext.capabilities.add", quoted(&added));
    of_containers("non-default capabilities", &names, &tail)
}

fn dropped_capabilities(pod: &Pod<'_>) -> Option<(String, String)> {
    let keeping =
        pod.named(|one| !texts(one, &["securityContext", "capabilities", "drop"]).contains(&"ALL"));
    let (adding, added) = added(pod, &["NET_BIND_SERVICE"]);
    let mut details = Vec::new();
    if !keeping.is_empty() {
        let tail = "must set securityContext.capabilities.drop=[\"ALL\"]";
        details.push(format!("{} {tail}", containers(&keeping)));
    }
    if !adding.is_empty() {
        details.push(format!(
            "{} must not include {} in securityContext.capabilities.add",
            containers(&adding),
            quoted(&added)
        ));
    }
    (!details.is_empty()).then(|| ("unrestricted capabilities".to_owned(), details.join("; ")))
}

fn host_namespaces(pod: &Pod<'_>) -> Option<(String, String)> {
    let used: Vec<String> = ["hostNetwork", "hostPID", "hostIPC"]
        .iter()
        .filter(|field| flag(pod.spec(), &[field]))
        .map(|field| format!("{field}=true"))
        .collect();
    (!used.is_empty()).then(|| ("host namespaces".to_owned(), used.join(", ")))
}

fn host_paths(pod: &Pod<'_>) -> Option<(String, String)> {
    let names: Vec<&str> = items(pod.content, &["spec", "volumes"])
        .iter()
        .filter(|volume| volume.get("hostPath").is_some_and(|path| !path.is_null()))
        .map(|volume| text(volume, &["name"]))
        .collect();
    let plural = if names.len() == 1 { "" } else { "s" };
    let details = format!("volume{plural} {}", quoted(&names));
    (!names.is_empty()).then(|| ("hostPath volumes".to_owned(), details))
}

fn host_ports(pod: &Pod<'_>) -> Option<(String, String)> {
    let ports = |one: &Value| -> Vec<i64> {
        let all = items(one, &["ports"]).iter();
        all.filter_map(|port| number(port, &["hostPort"])).filter(|port| *port != 0).collect()
    };
    let names = pod.named(|one| !ports(one).is_empty());
    let mut used: Vec<i64> = pod.containers().flat_map(ports).collect();
    used.sort_unstable();
    used.dedup();
    let (verb, plural) =
        (if names.len() == 1 { "uses" } else { "use" }, if used.len() == 1 { "" } else { "s" });
    let used: Vec<String> = used.iter().map(ToString::to_string).collect();
    of_containers("hostPort", &names, &format!("{verb} hostPort{plural} {}", used.join(", ")))
}

fn app_armor(pod: &Pod<'_>) -> Option<(String, String)> {
    const ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";
    let bad = |value: &Value| {
        let profile = at(value, &["securityContext", "appArmorProfile"])?;
        let kind = text(profile, &["type"]);
        (!matches!(kind, "RuntimeDefault" | "Localhost")).then(|| kind.to_owned())
    };
    let mut setters = Vec::new();
    let mut values: Vec<String> = bad(pod.spec()).into_iter().collect();
    if !values.is_empty() {
        setters.push("pod".to_owned());
    }
    let names = pod.named(|one| bad(one).is_some());
    values.extend(pod.containers().filter_map(bad));
    values.sort();
    values.dedup();
    if !names.is_empty() {
        setters.push(containers(&names));
    }
    let annotations = at(pod.content, &["metadata", "annotations"]).and_then(Value::as_object);
    let mut annotated: Vec<String> = annotations
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key, value.as_str()?)))
        .filter(|(key, value)| {
            let is_allowed =
                matches!(*value, "" | "runtime/default") || value.starts_with("localhost/");
            key.starts_with(ANNOTATION) && !is_allowed
        })
        .map(|(key, value)| format!("{key}={value:?}"))
        .collect();
    annotated.sort();
    if !annotated.is_empty() {
        let plural = if annotated.len() == 1 { "" } else { "s" };
        setters.push(format!("annotation{plural}"));
    }
    values.append(&mut annotated);
    let plural = if values.len() == 1 { "" } else { "s" };
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    let details = format!(
        "{} must not set AppArmor profile type to {}",
        setters.join(" and "),
        quoted(&values)
    );
    (!setters.is_empty()).then(|| (format!("forbidden AppArmor profile{plural}"), details))
}

fn host_process(pod: &Pod<'_>) -> Option<(String, String)> {
    let is_bad = |value: &Value| flag(value, &["securityContext", "windowsOptions", "hostProcess"]);
    let names = pod.named(is_bad);
    let who = match (is_bad(pod.spec()), names.is_empty()) {
        (false, true) => return None,
        (true, true) => "pod".to_owned(),
        (true, false) => format!("pod and {}", containers(&names)),
        (false, false) => containers(&names),
    };
    let tail = "must not set securityContext.windowsOptions.hostProcess=true";
    Some(("hostProcess".to_owned(), format!("{who} {tail}")))
}

fn privileged(pod: &Pod<'_>) -> Option<(String, String)> {
    let names = pod.named(|one| flag(one, &["securityContext", "privileged"]));
    of_containers("privileged", &names, "must not set securityContext.privileged=true")
}

fn proc_mount(pod: &Pod<'_>) -> Option<(String, String)> {
    let mount = |one: &Value| text(one, &["securityContext", "procMount"]).to_owned();
    let names = pod.named(|one| !matches!(mount(one).as_str(), "" | "Default"));
    let other = pod.containers().map(mount).find(|kind| !matches!(kind.as_str(), "" | "Default"));
    let tail = format!("must not set securityContext.procMount to {:?}", other.unwrap_or_default());
    of_containers("procMount", &names, &tail)
}

fn volumes(pod: &Pod<'_>) -> Option<(String, String)> {
    const ALLOWED: [&str; 9] = [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ];
    let kind_of = |volume: &Value| {
        let fields = volume.as_object().into_iter().flatten();
        let mut kinds = fields.filter(|(key, value)| *key != "name" && !value.is_null());
        kinds.next().map(|(key, _)| key.clone()).unwrap_or_default()
    };
    let bad: Vec<(&str, String)> = items(pod.content, &["spec", "volumes"])
        .iter()
        .map(|volume| (text(volume, &["name"]), kind_of(volume)))
        .filter(|(_, kind)| !kind.is_empty() && !ALLOWED.contains(&kind.as_str()))
        .collect();
    let names: Vec<&str> = bad.iter().map(|(name, _)| *name).collect();
    let mut kinds: Vec<&str> = bad.iter().map(|(_, kind)| kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let many = |count: usize| if count == 1 { "" } else { "s" };
    let verb = if names.len() == 1 { "uses" } else { "use" };
    let details = format!(
        "volume{} {} {verb} restricted volume type{} {}",
        many(names.len()),
        quoted(&names),
        many(kinds.len()),
        quoted(&kinds)
    );
    (!names.is_empty()).then(|| ("restricted volume types".to_owned(), details))
}

fn not_root(pod: &Pod<'_>) -> Option<(String, String)> {
    const TITLE: &str = "runAsNonRoot != true";
    let says = |value: &Value| at(value, &["securityContext", "runAsNonRoot"])?.as_bool();
    let explicit = pod.named(|one| says(one) == Some(false));
    let of_pod = says(pod.spec());
    if !explicit.is_empty() {
        let tail = "must not set securityContext.runAsNonRoot=false";
        return of_containers(TITLE, &explicit, tail);
    }
    if of_pod == Some(true) {
        return None;
    }
    let silent = pod.named(|one| says(one).is_none());
    if silent.is_empty() {
        return None;
    }
    let details = match of_pod {
        Some(_) => "pod must not set securityContext.runAsNonRoot=false".to_owned(),
        None => {
            format!("pod or {} must set securityContext.runAsNonRoot=true", containers(&silent))
        }
    };
    Some((TITLE.to_owned(), details))
}

fn root_user(pod: &Pod<'_>) -> Option<(String, String)> {
    let is_root = |value: &Value| number(value, &["securityContext", "runAsUser"]) == Some(0);
    let mut details = Vec::new();
    if is_root(pod.spec()) {
        details.push("pod must not set runAsUser=0".to_owned());
    }
    let names = pod.named(is_root);
    if !names.is_empty() {
        details.push(format!("{} must not set runAsUser=0", containers(&names)));
    }
    (!details.is_empty()).then(|| ("runAsUser=0".to_owned(), details.join("; ")))
}

fn se_linux(pod: &Pod<'_>) -> Option<(String, String)> {
    const ENGINE_SINCE: Version = 31;
    const TYPES: [&str; 5] =
        ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];
    let types = if pod.version < ENGINE_SINCE { &TYPES[..4] } else { &TYPES[..] };
    let option = |value: &Value, key: &str| {
        text(value, &["securityContext", "seLinuxOptions", key]).to_owned()
    };
    let is_bad = |value: &Value| {
        !types.contains(&option(value, "type").as_str())
            || !option(value, "user").is_empty()
            || !option(value, "role").is_empty()
    };
    let names = pod.named(is_bad);
    let is_pod = is_bad(pod.spec());
    if names.is_empty() && !is_pod {
        return None;
    }
    let who = match (is_pod, names.is_empty()) {
        (true, true) => "pod".to_owned(),
        (true, false) => format!("pod and {}", containers(&names)),
        (false, _) => containers(&names),
    };
    let all: Vec<&Value> = std::iter::once(pod.spec()).chain(pod.containers()).collect();
    let mut others: Vec<String> = all.iter().map(|one| option(one, "type")).collect();
    others.retain(|kind| !types.contains(&kind.as_str()));
    others.sort();
    others.dedup();
    let mut parts = Vec::new();
    if !others.is_empty() {
        let plural = if others.len() == 1 { "" } else { "s" };
        let others: Vec<&str> = others.iter().map(String::as_str).collect();
        parts.push(format!("type{plural} {}", quoted(&others)));
    }
    for key in ["user", "role"] {
        if all.iter().any(|one| !option(one, key).is_empty()) {
            parts.push(format!("{key} may not be set"));
        }
    }
    let details =
        format!("{who} set forbidden securityContext.seLinuxOptions: {}", parts.join("; "));
    Some(("seLinuxOptions".to_owned(), details))
}

fn profile(value: &Value) -> &str {
    text(value, &["securityContext", "seccompProfile", "type"])
}

fn seccomp(pod: &Pod<'_>) -> Option<(String, String)> {
    let is_bad = |value: &Value| profile(value) == "Unconfined";
    let names = pod.named(is_bad);
    let who = match (is_bad(pod.spec()), names.is_empty()) {
        (false, true) => return None,
        (true, true) => "pod".to_owned(),
        (true, false) => format!("pod and {}", containers(&names)),
        (false, false) => containers(&names),
    };
    let tail = "must not set securityContext.seccompProfile.type to \"Unconfined\"";
    Some(("seccompProfile".to_owned(), format!("{who} {tail}")))
}

fn seccomp_required(pod: &Pod<'_>) -> Option<(String, String)> {
    if let Some(found) = seccomp(pod) {
        return Some(found);
    }
    let is_good = |value: &Value| matches!(profile(value), "RuntimeDefault" | "Localhost");
    if is_good(pod.spec()) {
        return None;
    }
    let silent = pod.named(|one| !is_good(one));
    let details = format!(
        "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \
         \"Localhost\"",
        containers(&silent)
    );
    (!silent.is_empty()).then(|| ("seccompProfile".to_owned(), details))
}

fn sysctls(pod: &Pod<'_>) -> Option<(String, String)> {
    const SAFE: [(&str, Version); 12] = [
        ("kernel.shm_rmid_forced", 0),
        ("net.ipv4.ip_local_port_range", 0),
        ("net.ipv4.tcp_syncookies", 0),
        ("net.ipv4.ping_group_range", 0),
        ("net.ipv4.ip_unprivileged_port_start", 0),
        ("net.ipv4.ip_local_reserved_ports", 27),
        ("net.ipv4.tcp_keepalive_time", 29),
        ("net.ipv4.tcp_fin_timeout", 29),
        ("net.ipv4.tcp_keepalive_intvl", 29),
        ("net.ipv4.tcp_keepalive_probes", 29),
        ("net.ipv4.tcp_rmem", 32),
        ("net.ipv4.tcp_wmem", 32),
    ];
    let is_safe =
        |name: &str| SAFE.iter().any(|(safe, since)| *safe == name && pod.version >= *since);
    let all = items(pod.content, &["spec", "securityContext", "sysctls"]).iter();
    let bad: Vec<&str> =
        all.map(|one| text(one, &["name"])).filter(|name| !is_safe(name)).collect();
    (!bad.is_empty()).then(|| ("forbidden sysctls".to_owned(), bad.join(", ")))
}
