use expect_test::expect;
use kopf_model::Diff;

use super::*;

#[test]
fn every_child_is_listed_with_its_action() {
    let proposal = |child: &str, action| Proposal { child: child.into(), action };
    let (old, new) = (json!({"spec": {"replicas": 0}}), json!({"spec": {"replicas": 1}}));
    let proposals = vec![
        proposal("Service default/web", Action::Create),
        proposal("Deployment default/web", Action::Change(Diff::between(Some(&old), Some(&new)))),
        proposal("ConfigMap default/old", Action::Delete),
        proposal("Secret default/key", Action::Refuse("it is immutable".into())),
        proposal("ConfigMap default/a", Action::Keep(Readiness::Ready)),
        proposal("Pod default/b", Action::Keep(Readiness::Waiting("is pending".into()))),
    ];
    let owners = BTreeMap::from([("Site default/web".to_owned(), proposals)]);
    expect![[r#"
        Site default/web
          + Service default/web
          ~ Deployment default/web
              spec.replicas: 0 -> 1
          - ConfigMap default/old
          ! Secret default/key: it is immutable
          = ConfigMap default/a (ready)
          = Pod default/b (is pending)
        1 objects: 1 children to create, 1 to change, 1 to delete, 1 impossible, 2 as they are.
    "#]]
    .assert_eq(&text(&owners));
    let document = document(&owners);
    assert_eq!(document["children"][1]["action"], "change");
    assert_eq!(document["children"][3]["note"], "it is immutable");
}
