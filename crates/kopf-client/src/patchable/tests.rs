use super::*;

#[test]
fn only_a_response_about_the_method_means_no() {
    for (code, expected) in [
        (405, Patchable::No),
        (501, Patchable::No),
        (404, Patchable::Yes),
        (403, Patchable::Yes),
        (409, Patchable::Yes),
        (415, Patchable::Yes),
        (422, Patchable::Yes),
        (401, Patchable::Unknown),
        (429, Patchable::Unknown),
        (500, Patchable::Unknown),
        (503, Patchable::Unknown),
    ] {
        assert_eq!(Patchable::of(Failure::of_code(code)), expected, "{code}");
    }
    assert_eq!(Patchable::of(Failure::Connection), Patchable::Unknown);
}
