use kopf_core::handler::HandlerKind;
use kopf_core::invoke::{Call, Invocation, Invoke, Output};
use kopf_core::registry::Registry;
use kopf_model::Resource;

use super::*;

struct Nothing;

impl Invoke for Nothing {
    fn invoke(&self, _: Call) -> Invocation {
        Invocation::Future(Box::pin(async { Ok(Output::Nothing) }))
    }
}

fn handler(kind: HandlerKind, labels: &[(&str, MetaFilter)]) -> Handler {
    let mut handler = Handler::new("fn", kind, Arc::new(Nothing));
    handler.filters.labels =
        labels.iter().map(|(key, filter)| ((*key).to_owned(), filter.clone())).collect();
    handler
}

fn narrowing(handlers: Vec<Handler>) -> Narrowing {
    let resource = Resource {
        group: "x.dev".into(),
        version: "v1".into(),
        plural: "as".into(),
        kind: "A".into(),
        singular: "a".into(),
        shortcuts: Default::default(),
        categories: Default::default(),
        subresources: Default::default(),
        namespaced: true,
        preferred: true,
        verbs: Default::default(),
    };
    Narrowing::of(&Registry::from_iter(handlers).for_resource(&resource))
}

fn equals(value: &str) -> MetaFilter {
    MetaFilter::Equals(value.into())
}

#[test]
fn only_what_all_handlers_share_is_asked_of_the_server() {
    let one = handler(
        HandlerKind::Create,
        &[("app", equals("x")), ("a", MetaFilter::Present), ("b", MetaFilter::Absent)],
    );
    let other = handler(HandlerKind::Update, &[("b", MetaFilter::Absent), ("app", equals("x"))]);
    assert_eq!(narrowing(vec![one.clone()]).labels.as_deref(), Some("!b,a,app=x"));
    assert_eq!(narrowing(vec![one.clone(), other]).labels.as_deref(), Some("!b,app=x"));
    let unfiltered = handler(HandlerKind::Create, &[]);
    assert_eq!(narrowing(vec![one, unfiltered]), Narrowing::default());
}

#[test]
fn handlers_that_clean_up_forbid_narrowing() {
    for kind in [
        HandlerKind::Event,
        HandlerKind::Delete { optional: false },
        HandlerKind::Daemon(Default::default()),
        HandlerKind::Timer(Default::default()),
    ] {
        assert_eq!(narrowing(vec![handler(kind, &[("app", equals("x"))])]), Narrowing::default());
    }
    let optional = handler(HandlerKind::Delete { optional: true }, &[("app", equals("x"))]);
    assert_eq!(narrowing(vec![optional]).labels.as_deref(), Some("app=x"));
}

#[test]
fn functions_stay_here() {
    let function = MetaFilter::Matches(Arc::new(|_, _| true));
    assert_eq!(narrowing(vec![handler(HandlerKind::Create, &[("app", function)])]).labels, None);
}
