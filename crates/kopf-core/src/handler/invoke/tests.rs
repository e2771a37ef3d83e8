use super::*;

#[test]
fn reasons_to_stop_are_shown_by_name() {
    let both = StopReason::DAEMON_SIGNALLED.and(StopReason::RESOURCE_DELETED);
    assert_eq!(format!("{both:?}"), "RESOURCE_DELETED|DAEMON_SIGNALLED");
    assert_eq!(format!("{:?}", StopReason::default()), "NONE");
}

#[test]
fn forks_copy_copyable_values_and_share_the_rest() {
    let origin = Extensions::default();
    origin.insert(std::sync::Arc::new("shared"));
    let start = || origin.get_or_insert_copied(|| Mutex::new(1), |value| Mutex::new(*value.lock()));
    *start().lock() = 5;
    let (one, other) = (origin.fork(), origin.fork());
    assert!(one.holds_same(&origin), "nothing is copied before it is asked for");
    *one.get::<Mutex<i32>>().expect("a copy").lock() += 1;
    assert!(!one.holds_same(&origin));
    assert_eq!(*other.get_or_insert_with(|| Mutex::new(0)).lock(), 5);
    assert_eq!(*one.fork().get::<Mutex<i32>>().expect("a copy of a copy").lock(), 6);
    assert_eq!(*start().lock(), 5);
    let shared = origin.get::<&str>().expect("a value");
    assert!(std::sync::Arc::ptr_eq(&shared, &one.get::<&str>().expect("a value")));
}

#[test]
fn destructors_of_replaced_values_may_access_others() {
    struct ReadsOnDrop(std::sync::Arc<Extensions>);
    impl Drop for ReadsOnDrop {
        fn drop(&mut self) {
            assert_eq!(self.0.get::<&str>().as_deref(), Some(&"other"));
        }
    }
    let values = std::sync::Arc::new(Extensions::default());
    values.insert(std::sync::Arc::new("other"));
    for _ in 0..2 {
        values.insert(std::sync::Arc::new(ReadsOnDrop(std::sync::Arc::clone(&values))));
    }
}
