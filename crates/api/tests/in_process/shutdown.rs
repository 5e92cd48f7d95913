//! A stopping server reports that it is not ready.

use crate::served::Served;

#[test]
fn a_server_that_stops_is_alive_and_not_ready() {
    let served = Served::with_a_route_that_panics();
    served.api.begin_stopping();
    let answer = served.client().get("/ready");
    answer.failure(503, "unavailable");
    assert_eq!(answer.headers["retry-after"], "1");
    served.client().get("/health").success();
}
