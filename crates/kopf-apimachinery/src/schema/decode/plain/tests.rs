//! Tests that the plain decoder agrees with the general one or gives up.

use proptest::prelude::*;

use super::plain;
use crate::schema::decode::general;
use crate::stored::test_trees::tree;

/// Checks that the general decoder gives the same result, if there is one.
fn check(text: &[u8]) {
    if let Some(value) = plain(text) {
        let general = general(text).unwrap_or_else(|error| {
            panic!("{:?} is not JSON: {error}", String::from_utf8_lossy(text))
        });
        assert_eq!(general.value, value);
        assert_eq!(general.value.to_string(), value.to_string(), "the order of fields is the same");
        assert!(general.duplicates.is_empty());
    }
}

#[test]
fn common_bodies_are_plain() {
    for text in [
        r#"{"a":[1,-2,0,"x",true,false,null,{}, [] ],"b":{"c":"\"d\"\n\\\/\t\r\b\f"}}"#,
        " [ ] ",
        "123456789012345678",
        "\"ä€😀\"",
        "\n{ \"a\" : 1 , \"b\" : 2 }\n",
    ] {
        assert!(plain(text.as_bytes()).is_some(), "{text}");
        check(text.as_bytes());
    }
}

#[test]
fn rare_and_broken_bodies_are_left_to_the_general_decoder() {
    for text in [
        "",
        "{",
        "[1,",
        "[1,]",
        "{,}",
        r#"{"a":1,}"#,
        r#"{"a":1,"a":2}"#,
        r#"{"a" 1}"#,
        "{1:2}",
        "1.5",
        "1e3",
        "01",
        "-",
        "-0",
        "00",
        "--1",
        "1234567890123456789",
        "t",
        "nullx",
        "1 2",
        r#""\u0041""#,
        r#""\x""#,
        "\"a\nb\"",
        r#""a"#,
        r#""a\"#,
        "'a'",
        "[1}",
        r#"{"a":1]"#,
    ] {
        assert_eq!(plain(text.as_bytes()), None, "{text}");
    }
    assert_eq!(plain(b"\"\xff\""), None);
    let deep = "[".repeat(200) + &"]".repeat(200);
    assert_eq!(plain(deep.as_bytes()), None);
}

proptest! {
    #[test]
    fn trees_come_back(tree in tree()) {
        check(tree.to_string().as_bytes());
        check(format!("{tree:#}").as_bytes());
    }

    #[test]
    fn broken_texts_are_never_taken_for_whole_ones(
        tree in tree(),
        place in any::<prop::sample::Index>(),
        byte in prop::sample::select(b"{}[]\",:\\ 019-.eEtnx\n".to_vec()),
    ) {
        let mut text = tree.to_string().into_bytes();
        let place = place.index(text.len());
        text[place] = byte;
        check(&text);
        text.remove(place);
        check(&text);
        text.insert(place, byte);
        text.insert(place, byte);
        check(&text);
    }
}
