use std::rc::Rc;

use kopf::prelude::*;

fn main() {
    let _ = kopf::closure::create("kopfexamples", |name: Name| async move {
        let shared = Rc::new(name);
        std::future::ready(()).await;
        drop(shared);
    });
}
