//! Snapshot tests of failure messages, since they are a user interface.

use anyhow::anyhow;
use expect_test::expect;

use super::Failure;

#[test]
fn a_failure_shows_its_causes_and_the_fix() {
    let error = anyhow!("the API server answered 403 for `patch databases`")
        .context("could not add the finalizer to Database prod/orders");
    let failure = Failure::new(error).hint("apply the role printed by `kopf manifests`");
    expect![[r#"
        error: could not add the finalizer to Database prod/orders
          caused by: the API server answered 403 for `patch databases`
        hint: apply the role printed by `kopf manifests`
    "#]]
    .assert_eq(&failure.render());
}

#[test]
fn a_cause_that_was_just_said_is_not_repeated() {
    let error = anyhow!("no such file").context("could not read `x`: no such file");
    assert_eq!(Failure::new(error).render(), "error: could not read `x`: no such file\n");
}
