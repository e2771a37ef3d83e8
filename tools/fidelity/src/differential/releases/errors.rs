//! Requests that later releases refuse with another status.
//!
//! Pure: the list of changes, each about whole answers, since the parts of two different answers
//! have nothing in common.

use super::Exchanges;

struct Change {
    about: &'static str,
    /// The status codes of the judge and of the subject.
    statuses: (u64, u64),
    explains: fn(&Exchanges) -> bool,
}

const CHANGES: [Change; 8] = [
    Change {
        about: "impersonation without a user is a bad request; before, an internal error",
        statuses: (400, 500),
        explains: |it| {
            it.messages().0.starts_with("requested &user.DefaultInfo{Name:\"\"")
                && it.subject["response"]
                    .as_str()
                    .is_some_and(|text| text.contains(" without impersonating a user"))
        },
    },
    Change {
        about: "deletion options that cannot be decoded are a bad request; before, an internal error",
        statuses: (400, 500),
        explains: |it| {
            let (judge, subject) = it.messages();
            it.method == "DELETE" && judge == subject
        },
    },
    Change {
        about: "an update with a uid of an object that does not exist finds nothing; before, a conflict",
        statuses: (404, 409),
        explains: |it| {
            let (judge, subject) = it.messages();
            it.method == "PUT"
                && judge.ends_with(" not found")
                && subject.contains("StorageError: invalid object, Code: 4")
        },
    },
    Change {
        about: "creation under a terminating definition is forbidden; before, not allowed",
        statuses: (403, 405),
        explains: |it| {
            let (judge, subject) = it.messages();
            it.method == "POST"
                && subject == "create not allowed while custom resource definition is terminating"
                && judge.ends_with(&format!(" is forbidden: {subject}"))
        },
    },
    Change {
        about: "a list at a future version times out; before, an internal error",
        statuses: (504, 500),
        explains: |it| {
            let (judge, subject) = it.messages();
            judge.starts_with("Timeout: Too large resource version: ")
                && subject == "etcdserver: mvcc: required revision is a future revision"
        },
    },
    Change {
        about: "an applied item of a list without its key is invalid; before, an internal error",
        statuses: (422, 500),
        explains: |it| {
            let (judge, subject) = it.messages();
            it.method == "PATCH"
                && judge.contains(" is invalid: ")
                && judge.ends_with(": Required value")
                && subject
                    .contains("associative list with keys has an element that omits key field")
        },
    },
    Change {
        about: "watches that begin with a list are also sent as tables",
        statuses: (200, 406),
        explains: |it| it.method == "WATCH" && it.query.contains("sendInitialEvents=true"),
    },
    Change {
        about: "the memory limit of a running container may be decreased",
        statuses: (200, 422),
        explains: |it| {
            it.path.ends_with("/resize")
                && it.messages().1.contains("memory limits cannot be decreased unless resizePolicy")
        },
    },
];

/// The change that explains the whole difference.
pub(super) fn explain(exchanges: &Exchanges) -> Option<&'static str> {
    let statuses = exchanges.statuses();
    let mut changes = CHANGES.iter();
    let change = changes.find(|change| change.statuses == statuses && (change.explains)(exchanges));
    change.map(|change| change.about)
}
