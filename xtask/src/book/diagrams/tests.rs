use super::svg;

#[test]
fn boxes_and_arrows_are_drawn_with_their_texts() {
    let picture =
        svg("title: A <b>\none @ 0,0: first | line\ntwo @ 1,0*: second\none -> two: then").unwrap();
    assert!(picture.starts_with("<svg "), "{picture}");
    for part in ["A &lt;b&gt;", ">first<", ">line<", ">second<", ">then<", "marker-end", "#fdf0d5"]
    {
        assert!(picture.contains(part), "{part} is missing in {picture}");
    }
}

#[test]
fn mistakes_are_named() {
    let complaint = |text| svg(text).unwrap_err().to_string();
    assert_eq!(complaint("one @ x,0: a"), "`one @ x,0: a` is not understood");
    assert_eq!(complaint("one @ 0,0: a\none -> two"), "there is no box `two`");
}
