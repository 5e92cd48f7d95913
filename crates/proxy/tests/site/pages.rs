//! The proxy's own pages.

use http::{HeaderMap, HeaderValue, header::ACCEPT};
use http_body_util::BodyExt as _;
use launchway_proxy::pages::{Problem, page};

const ALL: &[(Problem, u16, &str)] = &[
    (Problem::UnknownHost, 404, "No application answers to this name"),
    (Problem::Stopped, 503, "This application is stopped"),
    (Problem::Absent, 503, "This application has no live version"),
    (Problem::NotAnswering, 502, "This application is not answering"),
    (Problem::TooSlow, 504, "This application took too long to answer"),
    (Problem::Starting, 503, "This application will be back in a moment"),
    (Problem::BadRequest("a <length> & chunks"), 400, "This request cannot be answered"),
    (Problem::HeadTooLarge, 431, "This request is too long"),
    (Problem::TooBusy, 503, "Too many requests are in progress"),
    (Problem::NotFound, 404, "There is no such page"),
    (Problem::MethodNotAllowed, 405, "This cannot be done here"),
];

async fn shown(problem: Problem, accept: &'static str) -> (http::response::Parts, String) {
    let headers = HeaderMap::from_iter([
        (ACCEPT, HeaderValue::from_static(accept)),
        (http::header::HOST, HeaderValue::from_static("<script>evil.example")),
    ]);
    let (head, body) = page(problem, &headers).into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (head, String::from_utf8(body.into()).unwrap())
}

#[tokio::test]
async fn every_problem_has_a_page_in_every_format() {
    for (problem, status, title) in ALL {
        for (accept, content_type) in [
            ("text/html", "text/html; charset=utf-8"),
            ("application/json", "application/json"),
            ("*/*", "text/plain; charset=utf-8"),
        ] {
            let (head, body) = shown(*problem, accept).await;
            assert_eq!(head.status, *status, "{problem:?}");
            assert_eq!(head.headers["content-type"], content_type, "{problem:?}");
            assert_eq!(head.headers["content-length"], body.len().to_string(), "{problem:?}");
            assert_eq!(head.headers["cache-control"], "no-store", "{problem:?}");
            assert_eq!(head.headers["x-content-type-options"], "nosniff", "{problem:?}");
            assert_eq!(head.headers.contains_key("retry-after"), *status == 503, "{problem:?}");
            assert!(body.contains(title), "{problem:?}");
            assert!(!body.contains("evil.example"), "{problem:?}");
        }
    }
}

#[tokio::test]
async fn a_page_loads_and_runs_nothing() {
    let (head, body) = shown(ALL[6].0, "text/html").await;
    assert!(body.contains("What is wrong with it: a &lt;length&gt; &amp; chunks."));
    for forbidden in ["<script", "src=", "href=", "url(", "@import", "http:", "https:", "{title}", "{advice}"]
    {
        assert!(!body.contains(forbidden), "{forbidden}");
    }
    let policy = head.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
}

#[tokio::test]
async fn a_program_gets_errors_in_the_envelope_of_the_api() {
    let (_, body) = shown(Problem::Stopped, "application/json").await;
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    let expected = serde_json::json!({
        "data": null,
        "message": "This application is stopped. Its owner can start it again.",
        "status": "error",
        "error": "stopped",
    });
    assert_eq!(body, expected);
}
