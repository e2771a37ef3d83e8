//! Quantities: canonical texts and invalid input.

use proptest::prelude::*;

use super::Quantity;

fn check(text: &str, canonical: &str) {
    let quantity = Quantity::parse(text).unwrap_or_else(|| panic!("{text} must parse"));
    assert_eq!(quantity.canonical(), canonical, "{text}");
}

#[test]
fn texts_become_canonical() {
    for (text, canonical) in [
        ("0", "0"),
        ("1", "1"),
        ("1000m", "1"),
        ("0.5", "500m"),
        ("100m", "100m"),
        (".5", "500m"),
        ("1.", "1"),
        ("1500", "1500"),
        ("2000", "2k"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("512", "512"),
        ("1Ki", "1Ki"),
        ("0.5Ki", "512"),
        ("1e3", "1e3"),
        ("1E3", "1e3"),
        ("100Mi", "100Mi"),
        ("1E", "1E"),
        ("-1", "-1"),
        ("1000000", "1M"),
        ("0.0000000001", "1n"),
        ("1e-3", "1e-3"),
    ] {
        check(text, canonical);
    }
}

#[test]
fn malformed_texts_are_refused() {
    for text in [
        "",
        "a",
        "1x",
        "1.2.3",
        "1KI",
        "--1",
        "e3",
        ".",
        "1 Gi",
        "99999999999999999999999999999999E",
    ] {
        assert_eq!(Quantity::parse(text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC{0,12}") {
        if let Some(quantity) = Quantity::parse(&text) {
            quantity.canonical();
        }
    }

    #[test]
    fn canonical_texts_keep_the_amount(
        digits in 0i64..1_000_000, suffix in "(m|k|M|Gi|Ki|)",
    ) {
        let quantity = Quantity::parse(&format!("{digits}{suffix}")).unwrap();
        let again = Quantity::parse(&quantity.canonical()).unwrap();
        prop_assert_eq!(quantity.nanos(), again.nanos());
        prop_assert_eq!(quantity.canonical(), again.canonical());
    }
}
