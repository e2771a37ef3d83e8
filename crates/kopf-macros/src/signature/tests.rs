//! Signatures are shown as written.

use syn::ItemFn;

use super::text;

#[track_caller]
fn stays(written: &str) {
    let function: ItemFn = syn::parse_str(&format!("{written} {{}}")).expect("a function");
    assert_eq!(text(&function.sig), written);
}

#[test]
fn signatures_are_shown_as_written() {
    stays("async fn audit()");
    stays("fn website(spec: &Spec, name: Name) -> Result<Vec<Child>>");
    stays("async fn greet(this: &Greeting, status: &mut Status<GreetingStatus>) -> Result");
    stays("async fn resize(Change { old, new }: Change<u32>) -> Result<(), kopf::Error>");
    stays("fn index(name: Name) -> Option<(String, [u8; 4])>");
    stays("async fn set(dns: State<Arc<dyn Dns + Send>>)");
    stays("fn borrow<'a>(text: &'a str)".replace("<'a>", "").as_str());
}
