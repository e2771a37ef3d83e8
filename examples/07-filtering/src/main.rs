//! What you learn: handlers for some objects only, by labels, fields and arbitrary conditions.
use kopf::input::Labels;
use kopf::prelude::*;

#[kopf::on::create("kopf.dev", "v1", "greetings", labels = {"tier": "gold", "team": present})]
async fn gold(labels: &Labels) {
    println!("gold for {}", &labels["team"]);
}

#[kopf::on::create("kopf.dev", "v1", "greetings", annotations = {"skip": absent, "mood": is_good})]
async fn good_mood(name: Name) {
    println!("{name} is in a good mood");
}

fn is_good(mood: Option<&str>) -> bool {
    matches!(mood, Some("good" | "great"))
}

#[kopf::on::update("kopf.dev", "v1", "greetings", field = "spec.field", old = "a", new = "b")]
async fn from_a_to_b() {
    println!("from a to b");
}

#[kopf::on::create("kopf.dev", "v1", "greetings", when = |spec: &Spec| spec["size"].as_i64() > Some(5))]
async fn big(name: Name) {
    println!("{name} is big");
}

pub fn operator() -> kopf::Operator {
    kopf::operator!("filtering", [gold, good_mood, from_a_to_b, big])
}

fn main() -> kopf::Exit {
    operator().main()
}
