//! Depth limits of JSON.

use serde_json::Value;

use super::{LEVELS_MAX, levels, read};

fn nested(levels: usize) -> String {
    [r#"{"[\\\"{":["#.repeat(levels / 2), "1.50".to_owned(), "]}".repeat(levels / 2)].concat()
}

#[test]
fn brackets_are_counted_outside_of_texts() {
    assert_eq!(levels(br#"{"a":[[]],"b":"[[[[\\\"[[[[","c":{}}"#), 3);
    assert_eq!(levels(nested(10).as_bytes()), 10);
    assert_eq!(levels(b"]]["), 1);
}

#[test]
fn trees_of_some_hundred_levels_are_read() {
    for depth in [2, 126, 128, 200, LEVELS_MAX] {
        let json = nested(depth);
        let tree: Value = read(json.as_bytes()).unwrap();
        assert_eq!(tree.to_string(), json.replace("1.50", "1.5"), "{depth}");
    }
    assert!(read::<Value>(nested(LEVELS_MAX + 2).as_bytes()).is_err());
}

#[test]
fn broken_texts_stay_broken() {
    let deep = nested(200);
    for broken in [&deep[..deep.len() - 1], &deep.replace("1.50", "?"), &format!("{deep}]")] {
        assert!(read::<Value>(broken.as_bytes()).is_err(), "{broken}");
    }
}
