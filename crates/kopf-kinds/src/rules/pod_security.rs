//! Rules of security contexts of pods and containers, and of the operating system.

use std::collections::HashSet;

use serde_json::Value;

use super::containers::descending;
use super::{Problems, go_text};
use crate::fields::{is_empty, list, text};
use crate::names::subdomain_problems;

/// The lists of containers, in the order in which upstream visits them.
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
const PROFILE_TYPES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];
const SYSCTL_LENGTH_MAX: usize = 253;
const SYSCTL_DETAIL: &str = "must have at most 253 characters and match regex \
    ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

/// Checks the security context of a pod.
pub(super) fn of_pod(spec: &Value, path: &str, problems: &mut Problems) {
    let context = &spec["securityContext"];
    let at = format!("{path}.securityContext");
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        account(&context[field], &format!("{at}.{field}"), problems);
    }
    for (index, group) in list(context, "supplementalGroups").iter().enumerate() {
        account(group, &format!("{at}.supplementalGroups[{index}]"), problems);
    }
    if spec["shareProcessNamespace"] == true && spec["hostPID"] == true {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        problems.invalid(&format!("{at}.shareProcessNamespace"), &true.into(), detail);
    }
    sysctls(spec, &format!("{at}.sysctls"), problems);
    problems.one_of_if_set(context, &at, "fsGroupChangePolicy", &["Always", "OnRootMismatch"]);
    seccomp(&context["seccompProfile"], &format!("{at}.seccompProfile"), problems);
    windows(&context["windowsOptions"], &format!("{at}.windowsOptions"), problems);
    app_armor(&context["appArmorProfile"], &format!("{at}.appArmorProfile"), problems);
    problems.one_of_if_set(context, &at, "supplementalGroupsPolicy", &["Merge", "Strict"]);
    problems.one_of_if_set(context, &at, "seLinuxChangePolicy", &["MountOption", "Recursive"]);
}

/// Checks the security context of a container.
pub(super) fn of_container(
    context: &Value,
    path: &str,
    has_host_users: bool,
    problems: &mut Problems,
) {
    for field in ["runAsUser", "runAsGroup"] {
        account(&context[field], &format!("{path}.{field}"), problems);
    }
    problems.one_of_if_set(context, path, "procMount", &["Default", "Unmasked"]);
    if has_host_users && context["procMount"] == "Unmasked" {
        let detail = "`hostUsers` must be false to use `Unmasked`";
        problems.invalid(&format!("{path}.procMount"), &context["procMount"], detail);
    }
    seccomp(&context["seccompProfile"], &format!("{path}.seccompProfile"), problems);
    if context["allowPrivilegeEscalation"] == false {
        if context["privileged"] == true {
            let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            problems.invalid_text(path, &go_text::security_context(context), detail);
        }
        for _ in list(&context["capabilities"], "add").iter().filter(|it| *it == "CAP_SYS_ADMIN") {
            let detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` \
                          CAP_SYS_ADMIN";
            problems.invalid_text(path, &go_text::security_context(context), detail);
        }
    }
    windows(&context["windowsOptions"], &format!("{path}.windowsOptions"), problems);
    app_armor(&context["appArmorProfile"], &format!("{path}.appArmorProfile"), problems);
}

/// Checks the id of a user or group; absent ones are valid.
fn account(id: &Value, path: &str, problems: &mut Problems) {
    if id.as_i64().is_some_and(|id| !(0..=i64::from(i32::MAX)).contains(&id)) {
        problems.invalid(path, id, "must be between 0 and 2147483647, inclusive");
    }
}

fn sysctls(spec: &Value, path: &str, problems: &mut Problems) {
    let mut names = HashSet::new();
    for (index, sysctl) in list(&spec["securityContext"], "sysctls").iter().enumerate() {
        let at = format!("{path}[{index}].name");
        let name = text(sysctl, "name");
        if name.is_empty() {
            problems.required(&at, "");
        } else if !is_sysctl(name) {
            problems.invalid(&at, &name.into(), SYSCTL_DETAIL);
        } else if names.contains(name) {
            problems.duplicate(&at, &name.into());
        }
        let dotted = name.replace('/', ".");
        let is_net = dotted.starts_with("net.");
        let is_ipc = ["kernel.shm", "kernel.msg", "fs.mqueue."]
            .iter()
            .any(|prefix| dotted.starts_with(prefix))
            || dotted == "kernel.sem";
        if is_net && spec["hostNetwork"] == true {
            let detail = "may not be specified when 'hostNetwork' is true";
            problems.invalid(&at, &name.into(), detail);
        } else if is_ipc && spec["hostIPC"] == true {
            problems.invalid(&at, &name.into(), "may not be specified when 'hostIPC' is true");
        }
        names.insert(name);
    }
}

fn is_sysctl(name: &str) -> bool {
    let is_word = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit();
    let is_part = |part: &str| {
        part.starts_with(is_word)
            && part.ends_with(is_word)
            && part.chars().all(|character| is_word(character) || matches!(character, '-' | '_'))
    };
    name.len() <= SYSCTL_LENGTH_MAX && name.split(['.', '/']).all(is_part)
}

fn seccomp(profile: &Value, path: &str, problems: &mut Problems) {
    if !profile.is_object() {
        return;
    }
    let at = format!("{path}.type");
    match text(profile, "type") {
        "" => problems.required(&at, "type is required when seccompProfile is set"),
        _ => problems.one_of(&at, &profile["type"], &PROFILE_TYPES),
    }
    let at = format!("{path}.localhostProfile");
    let file = &profile["localhostProfile"];
    match (profile["type"] == "Localhost", file.is_null()) {
        (true, true) => problems.required(&at, "must be set when seccomp type is Localhost"),
        (true, false) => descending(file, &at, problems),
        (false, true) => {}
        (false, false) => {
            let shown = format!(
                "core.SeccompProfile{{Type:{:?}, LocalhostProfile:(*string)(0xc000000000)}}",
                text(profile, "type")
            );
            let detail = "can only be set when seccomp type is Localhost";
            problems.invalid_text(&at, &shown, detail);
        }
    }
}

pub(super) fn app_armor(profile: &Value, path: &str, problems: &mut Problems) {
    const LENGTH_MAX: usize = 4095;
    const MISSING: &str = "must be set when AppArmor type is Localhost";
    if !profile.is_object() {
        return;
    }
    let at = format!("{path}.localhostProfile");
    let file = &profile["localhostProfile"];
    match text(profile, "type") {
        "" => {
            let detail = "type is required when appArmorProfile is set";
            problems.required(&format!("{path}.type"), detail);
        }
        "Localhost" => match file.as_str() {
            None => problems.required(&at, MISSING),
            Some(name) => {
                if name.trim() != name {
                    problems.invalid(&at, file, "must not be padded with whitespace");
                } else if name.is_empty() {
                    problems.required(&at, MISSING);
                }
                if name.len() > LENGTH_MAX {
                    problems.too_long(&at, LENGTH_MAX);
                }
            }
        },
        "RuntimeDefault" | "Unconfined" => {
            if !file.is_null() {
                let detail = "can only be set when AppArmor type is Localhost";
                problems.invalid(&at, file, detail);
            }
        }
        _ => problems.one_of(&format!("{path}.type"), &profile["type"], &PROFILE_TYPES),
    }
}

fn windows(options: &Value, path: &str, problems: &mut Problems) {
    if let Some(name) = options["gmsaCredentialSpecName"].as_str() {
        let at = format!("{path}.gmsaCredentialSpecName");
        for problem in subdomain_problems(name) {
            problems.invalid(&at, &options["gmsaCredentialSpecName"], &problem);
        }
    }
    if options["gmsaCredentialSpec"] == "" {
        let detail = "gmsaCredentialSpec cannot be an empty string";
        problems.invalid(&format!("{path}.gmsaCredentialSpec"), &"".into(), detail);
    }
    let Some(name) = options["runAsUserName"].as_str() else { return };
    let mut wrong = |detail: &str| {
        problems.invalid(&format!("{path}.runAsUserName"), &name.into(), detail);
    };
    if name.is_empty() {
        wrong("runAsUserName cannot be an empty string");
        return;
    }
    if name.chars().any(|character| character.is_ascii_control()) {
        wrong("runAsUserName cannot contain control characters");
        return;
    }
    if name.matches('\\').count() > 1 {
        wrong("runAsUserName cannot contain more than one backslash");
        return;
    }
    let user = name.split_once('\\').map_or(name, |(_, user)| user);
    if user.is_empty() {
        wrong("runAsUserName's User cannot be empty");
    }
    if !user.is_empty() && user.chars().all(|character| matches!(character, '.' | ' ')) {
        wrong("runAsUserName's User cannot contain only periods or spaces");
    }
    if user.chars().any(|character| "\"/\\:;|=,+*?<>@[]".contains(character)) {
        wrong(
            "runAsUserName's User cannot contain the following characters: \
             \"/\\:;|=,+*?<>@[]",
        );
    }
}

/// Checks that a pod without the users of its host does not use the host otherwise.
pub(super) fn host_users(spec: &Value, path: &str, problems: &mut Problems) {
    if spec["hostUsers"] != false {
        return;
    }
    for (field, shown) in
        [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")]
    {
        if spec[field] == true {
            problems.forbidden(&format!("{path}.{shown}"), "when `pod.Spec.HostUsers` is false");
        }
    }
}

/// Checks containers that run on the host, which only Windows has.
pub(super) fn host_process(spec: &Value, path: &str, problems: &mut Problems) {
    let flag = |owner: &Value| owner["securityContext"]["windowsOptions"]["hostProcess"].as_bool();
    let of_pod = flag(spec);
    let (mut all, mut on_host) = (0, 0);
    for (container, at) in containers(spec, path) {
        all += 1;
        let own = flag(container);
        if let (Some(pod), Some(own)) = (of_pod, own)
            && pod != own
        {
            let at = format!("{at}.securityContext.windowsOptions.hostProcess");
            let detail =
                format!("pod hostProcess value must be identical if both are specified, was {pod}");
            problems.invalid(&at, &own.into(), &detail);
        }
        if own.or(of_pod) == Some(true) {
            on_host += 1;
        }
    }
    if on_host == 0 {
        return;
    }
    if on_host != all {
        let detail = "If pod contains any hostProcess containers then all containers must be \
                      HostProcess containers";
        problems.invalid(path, &"".into(), detail);
    }
    if spec["hostNetwork"] != true {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        problems.invalid(&format!("{path}.hostNetwork"), &false.into(), detail);
    }
}

/// All containers of a pod with their paths.
pub(super) fn containers<'spec>(
    spec: &'spec Value,
    path: &str,
) -> impl Iterator<Item = (&'spec Value, String)> {
    let path = path.to_owned();
    CONTAINERS.into_iter().flat_map(move |field| {
        let path = path.clone();
        let numbered = list(spec, field).iter().enumerate();
        numbered.map(move |(index, container)| (container, format!("{path}.{field}[{index}]")))
    })
}

/// Checks that a pod uses only what its operating system has.
pub(super) fn operating_system(spec: &Value, path: &str, problems: &mut Problems) {
    const ON_LINUX: &str = "windows options cannot be set for a linux pod";
    let system = &spec["os"];
    if !system.is_object() {
        return;
    }
    match text(system, "name") {
        "" => problems.required(&format!("{path}.os.name"), "cannot be empty"),
        "linux" => {
            if spec["securityContext"]["windowsOptions"].is_object() {
                let path = format!("{path}.securityContext.windowsOptions");
                problems.forbidden(&path, ON_LINUX);
            }
            for (container, at) in containers(spec, path) {
                if container["securityContext"]["windowsOptions"].is_object() {
                    let path = format!("{at}.securityContext.windowsOptions");
                    problems.forbidden(&path, ON_LINUX);
                }
            }
        }
        "windows" => on_windows(spec, path, problems),
        _ => problems.one_of(&format!("{path}.os"), &system["name"], &["linux", "windows"]),
    }
}

fn on_windows(spec: &Value, path: &str, problems: &mut Problems) {
    const DETAIL: &str = "cannot be set for a windows pod";
    const OF_POD: [&str; 10] = [
        "appArmorProfile",
        "seLinuxOptions",
        "seccompProfile",
        "fsGroup",
        "fsGroupChangePolicy",
        "runAsUser",
        "runAsGroup",
        "supplementalGroups",
        "supplementalGroupsPolicy",
        "seLinuxChangePolicy",
    ];
    const OF_CONTAINER: [&str; 10] = [
        "appArmorProfile",
        "seLinuxOptions",
        "seccompProfile",
        "capabilities",
        "readOnlyRootFilesystem",
        "privileged",
        "allowPrivilegeEscalation",
        "procMount",
        "runAsUser",
        "runAsGroup",
    ];
    let context = &spec["securityContext"];
    for field in OF_POD {
        if !context[field].is_null() {
            problems.forbidden(&format!("{path}.securityContext.{field}"), DETAIL);
        }
    }
    if !is_empty(context, "sysctls") {
        problems.forbidden(&format!("{path}.securityContext.sysctls"), DETAIL);
    }
    for field in ["hostUsers", "shareProcessNamespace"] {
        if !spec[field].is_null() {
            problems.forbidden(&format!("{path}.{field}"), DETAIL);
        }
    }
    for field in ["hostPID", "hostIPC"] {
        if spec[field] == true {
            problems.forbidden(&format!("{path}.{field}"), DETAIL);
        }
    }
    for (container, at) in containers(spec, path) {
        for field in OF_CONTAINER {
            if !container["securityContext"][field].is_null() {
                problems.forbidden(&format!("{at}.securityContext.{field}"), DETAIL);
            }
        }
    }
}
