use super::*;

#[test]
fn numbers_of_any_size_are_durations() {
    assert_eq!((-1.0).secs(), Duration::ZERO);
    assert_eq!(f64::NAN.hours(), Duration::ZERO);
    assert_eq!(f64::INFINITY.secs(), Duration::MAX);
    assert_eq!(1e30.minutes(), Duration::MAX);
    assert_eq!(u64::MAX.hours(), Duration::MAX);
}
