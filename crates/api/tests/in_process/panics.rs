//! A panic affects only its own request.

use crate::served::Served;

#[test]
fn panic_response_is_in_the_envelope_without_details() {
    let served = Served::with_a_route_that_panics();
    let answer = served.client().with_header("x-request-id", "fatal-1").get("/panics");
    let message = answer.failure(500, "internal");
    assert_eq!(answer.headers["x-request-id"], "fatal-1");
    assert!(message.contains("x-request-id"), "{message}");
    for detail in ["canary", "panic", ".rs", "served"] {
        assert!(!answer.text.contains(detail), "{answer:?}");
    }
    let unnamed = served.client().get("/panics");
    unnamed.failure(500, "internal");
    assert_ne!(unnamed.headers["x-request-id"], "");
}

#[test]
fn a_panic_inside_a_use_case_is_no_different() {
    let served = Served::with_a_route_that_panics();
    // No call of a port is expected, so the mock panics.
    served.client().with_token("any").get("/api/v1/user").failure(500, "internal");
    served.client().get("/api/v1/auth/is-admin-registered").failure(500, "internal");
}

#[test]
fn the_server_goes_on_after_any_number_of_panics() {
    let served = Served::with_a_route_that_panics();
    let client = served.client();
    for _ in 0..20 {
        client.get("/panics").failure(500, "internal");
        client.get("/health").success();
    }
    let metrics = client.get("/metrics").text;
    let counted = metrics.lines().find(|line| line.contains(r#"status="500""#)).unwrap_or_default();
    assert!(counted.ends_with(" 20"), "{metrics}");
}
