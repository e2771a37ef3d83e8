use super::*;

#[test]
fn the_pages_ask_nobody_else() {
    for (path, _, content) in FILES {
        let text = String::from_utf8_lossy(content);
        // The namespace of SVG is a name, not an address.
        let text = text.replace("http://www.w3.org/", "");
        for scheme in ["http://", "https://", "//cdn"] {
            let found = text.match_indices(scheme).next();
            assert!(found.is_none(), "{path} has {scheme} at {found:?}");
        }
    }
}

#[test]
fn the_page_runs_no_code_but_its_own_file() {
    let html = String::from_utf8_lossy(FILES[0].2);
    assert!(html.contains("<script src=\"/app.js\""), "{html}");
    assert_eq!(html.matches("<script").count(), 1);
    assert!(!html.contains("style="), "the policy forbids styles inside of the page");
}
