use kopf::filter::MetaFilter;
use kopf::Error;
use kopf::prelude::*;

fn main() {
    let databases = ("example.com", "v1", "databases");
    let up = kopf::closure::convert(databases, "v2", || async { Ok::<_, Error>(json!({})) });
    drop(up.label("app", MetaFilter::Present));
}
