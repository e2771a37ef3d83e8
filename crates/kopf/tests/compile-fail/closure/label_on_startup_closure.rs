use kopf::filter::MetaFilter;

fn main() {
    let _ = kopf::closure::startup(|| async {}).label("app", MetaFilter::Present);
}
