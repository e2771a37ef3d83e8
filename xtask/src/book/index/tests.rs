use std::collections::BTreeMap;

use super::text;

#[test]
fn every_page_of_the_summary_is_named_with_its_first_sentence() {
    let pages = [
        ("SUMMARY.md", "# Summary\n\n- [One](one.md)\n\n# Part\n- [Two](deep/two.md)\n"),
        ("one.md", "# One\n\nThe [first](a.md)\nsentence. The second.\n"),
        ("deep/two.md", "# Two\n\n| a | b |\n\n```\nsome code\n```\n"),
    ];
    let pages: BTreeMap<String, String> =
        pages.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
    let text = text(&pages);
    assert!(text.contains("\n- [One](one.html): The first sentence\n"), "{text}");
    assert!(text.contains("\n## Part\n\n- [Two](deep/two.html)\n"), "{text}");
}
