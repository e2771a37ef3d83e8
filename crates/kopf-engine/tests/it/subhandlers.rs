//! Sub-handlers: implicit and explicit execution, retries, nesting, restarts.

use std::time::Duration;

use kopf_core::handler::{Handler, HandlerKind};
use kopf_core::invoke::Output;
use kopf_core::occasion::Occasion;
use serde_json::{Value, json};

use crate::world::{World, async_handler, handler, quiesce, temporary};

#[tokio::test(start_paused = true)]
async fn finished_subhandlers_are_not_run_again_with_the_parent() {
    let world = World::new().await;
    let calls = world.calls.clone();
    let good = world.noting("good", HandlerKind::Sub);
    let parent = handler("parent", HandlerKind::Create, move |call| {
        calls.note("parent");
        let children = call.sub_handlers.expect("children");
        children.register(good.clone());
        let calls = calls.clone();
        children.register(handler("bad", HandlerKind::Sub, move |call| {
            calls.note(format!("bad:{}", call.attempt.retry));
            if call.attempt.retry < 1 { Err(temporary("wait", 20.0)) } else { Ok(Output::Nothing) }
        }));
        Ok(Output::Json(json!("done")))
    });
    let engine = world.start(vec![parent]).await;
    world.create("a", json!({"x": 1})).await;
    let object = world.until_handled("a").await;
    quiesce().await;
    assert_eq!(world.calls.all(), ["parent", "good:0", "bad:0", "parent", "bad:1"]);
    assert_eq!(object["status"], json!({"parent": "done"}));
    assert_eq!(object["metadata"]["annotations"].as_object().map(|it| it.len()), Some(1));
    assert_eq!(world.writes().len(), 2, "{:#?}", world.writes());
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn subhandlers_continue_after_a_restart() {
    let world = World::new().await;
    let parent = |world: &World| {
        let calls = world.calls.clone();
        let good = world.noting("good", HandlerKind::Sub);
        handler("parent", HandlerKind::Create, move |call| {
            let children = call.sub_handlers.expect("children");
            children.register(good.clone());
            let calls = calls.clone();
            children.register(handler("bad", HandlerKind::Sub, move |call| {
                calls.note(format!("bad:{}", call.attempt.retry));
                if call.attempt.retry < 1 {
                    Err(temporary("wait", 20.0))
                } else {
                    Ok(Output::Nothing)
                }
            }));
            Ok(Output::Nothing)
        })
    };
    let engine = world.start(vec![parent(&world)]).await;
    world.create("a", json!({"x": 1})).await;
    let has_note = |object: &Value| {
        object["metadata"]["annotations"]["kopf.zalando.org/parent.bad"].is_string()
    };
    world.until("a", "the note", has_note).await;
    engine.abort();
    quiesce().await;
    let engine = world.start(vec![parent(&world)]).await;
    world.until_handled("a").await;
    assert_eq!(world.calls.all(), ["good:0", "bad:0", "bad:1"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn explicit_execution_and_nesting_work() {
    let world = World::new().await;
    let calls = world.calls.clone();
    let parent = async_handler("parent", HandlerKind::Create, move |call| {
        let calls = calls.clone();
        async move {
            let children = call.sub_handlers.expect("children");
            let inner = calls.clone();
            children.register(handler("sub", HandlerKind::Sub, move |call| {
                inner.note("sub");
                let innermost = inner.clone();
                call.sub_handlers.expect("children").register(handler(
                    "subsub",
                    HandlerKind::Sub,
                    move |call| {
                        innermost.note(format!("{}", call.handler.id));
                        Ok(Output::Json(json!(1)))
                    },
                ));
                Ok(Output::Nothing)
            }));
            children.execute().await?;
            calls.note("after");
            Ok(Output::Nothing)
        }
    });
    let engine = world.start(vec![parent]).await;
    world.create("a", json!({"x": 1})).await;
    let object = world.until_handled("a").await;
    assert_eq!(world.calls.all(), ["sub", "parent/sub/subsub", "after"]);
    assert_eq!(object["status"], json!({"parent/sub/subsub": 1}));
    engine.stop().await.expect("a clean end");
}

fn sleeping(id: &str, seconds: u64) -> Handler {
    async_handler(id, HandlerKind::Sub, move |_| async move {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        Ok(Output::Nothing)
    })
}

/// The stored record of a sub-handler of `parent`.
fn note_of(object: &Value, sub: &str) -> Value {
    let text = &object["metadata"]["annotations"][format!("kopf.zalando.org/parent.{sub}")];
    text.as_str().map_or(Value::Null, |text| serde_json::from_str(text).expect("JSON"))
}

#[tokio::test(start_paused = true)]
async fn success_of_a_subhandler_is_written_while_a_slow_sibling_runs() {
    let world = World::new().await;
    let parent = |world: &World| {
        let calls = world.calls.clone();
        let quick = handler("quick", HandlerKind::Sub, move |_| {
            calls.note("quick");
            Ok(Output::Json(json!("result")))
        });
        handler("parent", HandlerKind::Create, move |call| {
            let children = call.sub_handlers.expect("children");
            children.register(quick.clone());
            children.register(sleeping("middle", 5));
            children.register(sleeping("slow", 30));
            Ok(Output::Nothing)
        })
    };
    let engine = world.start(vec![parent(&world)]).await;
    world.create("a", json!({"x": 1})).await;
    let is_noted = |object: &Value, sub| note_of(object, sub)["success"] == true;
    let object = world.until("a", "the first note", |it| is_noted(it, "quick")).await;
    assert_eq!(object["status"], json!({"parent/quick": "result"}), "its result goes along");
    assert!(!is_noted(&object, "middle"), "{object:#}");
    let object = world.until("a", "the second note", |it| is_noted(it, "middle")).await;
    assert!(!is_noted(&object, "slow"), "{object:#}");
    engine.abort();
    quiesce().await;
    let engine = world.start(vec![parent(&world)]).await;
    let object = world.until_handled("a").await;
    assert_eq!(world.calls.all(), ["quick"], "what succeeded before a crash is not run again");
    let notes = object["metadata"]["annotations"].as_object().map(|notes| notes.len());
    assert_eq!(notes, Some(1), "notes are removed at the end: {object:#}");
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_parent_in_the_middle_of_something_is_not_written_with_its_subhandlers() {
    let world = World::new().await;
    let quick = world.noting("quick", HandlerKind::Sub);
    let parent = async_handler("parent", HandlerKind::Create, move |call| {
        let quick = quick.clone();
        async move {
            let children = call.sub_handlers.expect("children");
            children.register(quick);
            children.execute().await?;
            call.patch.lock().set(&"status.phase".into(), json!("half"));
            tokio::time::sleep(Duration::from_secs(30)).await;
            call.patch.lock().set(&"status.phase".into(), json!("whole"));
            Ok(Output::Nothing)
        }
    });
    let engine = world.start(vec![parent]).await;
    world.create("a", json!({"x": 1})).await;
    let object = world.until("a", "the note", |it| note_of(it, "quick")["success"] == true).await;
    assert_eq!(object["status"], Value::Null, "{object:#}");
    let object = world.until_handled("a").await;
    assert_eq!(object["status"], json!({"phase": "whole"}));
    engine.stop().await.expect("a clean end");
}

fn sub_of_field(world: &World, id: &'static str, field: &str) -> Handler {
    let mut sub = world.noting(id, HandlerKind::Sub);
    sub.filters.field = Some(field.into());
    sub
}

#[tokio::test(start_paused = true)]
async fn fields_of_subhandlers_must_have_changed_where_those_of_the_parent_must() {
    let world = World::new().await;
    let parent = |id: &'static str, kind: HandlerKind| {
        let x = sub_of_field(&world, if id == "update" { "ux" } else { "cx" }, "spec.x");
        let y = sub_of_field(&world, if id == "update" { "uy" } else { "cy" }, "spec.y");
        handler(id, kind, move |call| {
            let children = call.sub_handlers.expect("children");
            children.register(x.clone());
            let inner = y.clone();
            children.register(handler("deep", HandlerKind::Sub, move |call| {
                call.sub_handlers.expect("children").register(inner.clone());
                Ok(Output::Nothing)
            }));
            Ok(Output::Nothing)
        })
    };
    let handlers =
        vec![parent("create", HandlerKind::Create), parent("update", HandlerKind::Update)];
    let engine = world.start(handlers).await;
    world.create("a", json!({"x": 1, "y": 1})).await;
    world.until_handled("a").await;
    assert_eq!(world.calls.all(), ["cx:0", "cy:0"]);
    world.merge("a", json!({"spec": {"y": 2}})).await;
    world.until_handled("a").await;
    world.merge("a", json!({"spec": {"z": 1}})).await;
    world.until_handled("a").await;
    assert_eq!(world.calls.all(), ["cx:0", "cy:0", "uy:0"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn subhandlers_of_a_field_get_the_change_of_that_field() {
    let world = World::new().await;
    let calls = world.calls.clone();
    let parent = handler("parent", HandlerKind::Field, move |call| {
        let children = call.sub_handlers.expect("children");
        let noting = |id: &'static str| {
            let calls = calls.clone();
            handler(id, HandlerKind::Sub, move |call| {
                let Occasion::Change(change) = &call.occasion else { panic!("no change") };
                calls.note(format!("{id}: {}", change.diff));
                Ok(Output::Nothing)
            })
        };
        children.register(noting("all"));
        let mut part = noting("part");
        part.filters.field = Some("x".into());
        children.register(part);
        Ok(Output::Nothing)
    });
    let mut parent = parent;
    parent.filters.field = Some("spec.items".into());
    let engine = world.start(vec![parent]).await;
    world.create("a", json!({"items": {"x": 1, "y": 1}, "other": 1})).await;
    world.until_handled("a").await;
    world.merge("a", json!({"spec": {"items": {"x": 2, "y": 2}, "other": 2}})).await;
    world.until_handled("a").await;
    let told = [
        r#"all: (('add', (), None, {"x":1,"y":1}),)"#,
        "part: (('add', (), None, 1),)",
        "all: (('change', ('x',), 1, 2), ('change', ('y',), 1, 2),)",
        "part: (('change', (), 1, 2),)",
    ];
    assert_eq!(world.calls.all(), told);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn renamed_subhandlers_of_renamed_handlers_continue() {
    let world = World::new().await;
    let parent = |id: &'static str, quick: Handler| {
        let calls = world.calls.clone();
        handler(id, HandlerKind::Create, move |call| {
            let children = call.sub_handlers.expect("children");
            children.register(quick.clone());
            let calls = calls.clone();
            children.register(handler("slow", HandlerKind::Sub, move |call| {
                calls.note(format!("slow:{}", call.attempt.retry));
                match call.attempt.retry {
                    0 => Err(temporary("wait", 20.0)),
                    _ => Ok(Output::Nothing),
                }
            }));
            Ok(Output::Nothing)
        })
    };
    let former = parent("former", world.noting("quick", HandlerKind::Sub));
    let engine = world.start(vec![former]).await;
    world.create("a", json!({"x": 1})).await;
    world.until("a", "the notes", |it| !it["metadata"]["annotations"].is_null()).await;
    engine.stop().await.expect("a clean end");
    let mut renamed = world.noting("renamed", HandlerKind::Sub);
    renamed.was = vec!["quick".into()];
    let mut parent = parent("parent", renamed);
    parent.was = vec!["former".into()];
    let engine = world.start(vec![parent]).await;
    let object = world.until_handled("a").await;
    assert_eq!(world.calls.all(), ["quick:0", "slow:0", "slow:1"]);
    let notes = object["metadata"]["annotations"].as_object().map(|notes| notes.len());
    assert_eq!(notes, Some(1), "notes are removed at the end: {object:#}");
    engine.stop().await.expect("a clean end");
}
