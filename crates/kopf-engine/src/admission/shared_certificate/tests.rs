//! When the certificate is created, renewed and put into use.

use super::*;

fn at(days: u64) -> Timestamp {
    "2026-01-01T00:00:00Z".parse::<Timestamp>().expect("a time")
        + Duration::from_secs(days * 24 * 3600)
}

#[test]
fn a_certificate_is_renewed_in_two_steps_by_the_leader_only() {
    let dates = |prepared| Some(Dates { expires: Some(at(365)), prepared });
    assert_eq!(step(None, false, at(0)), Step::Create);
    assert_eq!(step(dates(None), true, at(200)), Step::Use);
    assert_eq!(step(dates(None), true, at(280)), Step::Prepare);
    assert_eq!(step(dates(None), false, at(280)), Step::Use);
    assert_eq!(step(dates(Some(at(280))), true, at(280)), Step::Use);
    assert_eq!(step(dates(Some(at(280))), true, at(281)), Step::Promote);
    assert_eq!(step(dates(None), false, at(366)), Step::Replace);
    let foreign = Some(Dates { expires: None, prepared: None });
    assert_eq!(step(foreign, true, at(9999)), Step::Use);
}

#[test]
fn the_created_certificate_can_be_used_by_the_server() {
    let mut endpoint = AdmissionEndpoint::managed(([127, 0, 0, 1], 0), "demo");
    endpoint.service = Some(("ops".to_owned(), "demo".to_owned()));
    let made = make(&endpoint, Timestamp::now()).expect("a certificate");
    assert_ne!(made.authority, made.chain);
    assert_eq!(last_certificate(&format!("{}{}", made.chain, made.authority)), made.authority);
    endpoint.certificate = Some((Pem::Text(made.chain), Pem::Text(made.key)));
    endpoint.authority = Some(Pem::Text(made.authority.clone()));
    let tls = super::super::server::Tls::new(&endpoint).expect("usable");
    assert_eq!(tls.authority, made.authority);
}
