struct Cloud;

#[kopf::handlers]
impl Default for Cloud {
    fn default() -> Self {
        Self
    }
}

fn main() {}
