use kopf::input::DryRun;

#[kopf::on::event("kopfexamples")]
async fn handle(dry_run: DryRun) {
    drop(dry_run);
}

fn main() {}
