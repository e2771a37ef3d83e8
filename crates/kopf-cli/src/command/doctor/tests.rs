use expect_test::expect;

use super::{Finding, table};

#[test]
fn findings_are_readable_without_colours() {
    let findings = [
        Finding::ok("rust", "rustc 1.95.0"),
        Finding::note("kubectl", "there is no `kubectl`", "install it"),
        Finding::wrong("clock", "70 s ahead of the server's", "set it"),
    ];
    expect![[r#"
        ok     rust     rustc 1.95.0
        note   kubectl  there is no `kubectl`
                        hint: install it
        WRONG  clock    70 s ahead of the server's
                        hint: set it

        1 thing does not work.
    "#]]
    .assert_eq(&table(&findings));
}
