use std::collections::HashMap;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, header};
use tokio::time::Instant;

use super::{TOKENS_MAX, Verdict, bearer, remember};

fn token_of(value: &'static str) -> Option<String> {
    let mut headers = HeaderMap::new();
    headers.insert(header::AUTHORIZATION, HeaderValue::from_static(value));
    bearer(&headers).map(str::to_owned)
}

#[test]
fn only_bearer_tokens_count() {
    assert_eq!(token_of("Bearer abc").as_deref(), Some("abc"));
    assert_eq!(token_of("bearer abc").as_deref(), Some("abc"));
    assert_eq!(token_of("Basic abc"), None);
    assert_eq!(token_of("Bearer "), None);
    assert_eq!(token_of("abc"), None);
    assert_eq!(bearer(&HeaderMap::new()), None);
}

#[test]
fn verdicts_are_limited_and_end() {
    let now = Instant::now();
    let later = now + Duration::from_secs(10);
    let mut tokens = HashMap::new();
    for index in 0..TOKENS_MAX * 2 {
        let until = later + Duration::from_secs(index as u64);
        remember(&mut tokens, &index.to_string(), now, (until, Verdict::Allowed));
    }
    assert_eq!(tokens.len(), TOKENS_MAX);
    assert!(!tokens.contains_key("0"), "the oldest are dropped first");
    let long_after = now + Duration::from_secs(10_000);
    remember(
        &mut tokens,
        "new",
        long_after,
        (long_after + Duration::from_secs(1), Verdict::Unknown),
    );
    assert_eq!(tokens.len(), 1);
}
