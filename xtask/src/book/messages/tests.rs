use super::{joined, quoted};

#[test]
fn messages_are_code_of_several_words_in_the_first_column() {
    let page = "| `a b c d` and `/path` | `not this one either` |\ntext `x y z w`\n| `one two ... three` | x |";
    assert_eq!(quoted(page), [(1, "a b c d")]);
}

#[test]
fn strings_over_several_lines_are_one() {
    assert_eq!(joined("\"one \\\n     two\""), "\"one two\"");
}
