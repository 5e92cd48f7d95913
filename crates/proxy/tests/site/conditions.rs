//! Conditional requests.

use std::{
    fs::{File, FileTimes},
    time::{Duration, SystemTime},
};

use http::Method;

use crate::site::Site;

const BEFORE: &str = "Sun, 09 Sep 2001 01:46:39 GMT";
const EXACTLY: &str = "Sun, 09 Sep 2001 01:46:40 GMT";
const AFTER: &str = "Sun, 09 Sep 2001 01:46:41 GMT";

/// A site whose one file was modified at [`EXACTLY`], and half a second.
fn site() -> Site {
    let site = Site::with(&[("a.txt", "content")]);
    let modified = SystemTime::UNIX_EPOCH + Duration::from_millis(1_000_000_000_500);
    let file = File::options().write(true).open(site.path("a.txt")).unwrap();
    file.set_times(FileTimes::new().set_modified(modified)).unwrap();
    site
}

#[tokio::test]
async fn conditions_decide_as_the_standard_says() {
    let site = site();
    let tag = site.get("/a.txt").await.tag().to_owned();
    let (weak, listed) = (format!("W/{tag}"), format!("\"x\", {tag}"));
    let (with_comma, after_mistake) = (format!("\"x,y\" ,W/{tag}"), format!("x, {tag}"));
    let (unquoted, glued) = (tag.trim_matches('"').to_owned(), format!("\"x\"{tag}"));
    for (headers, status) in [
        (&[("if-none-match", tag.as_str())][..], 304),
        (&[("if-none-match", &weak)], 304),
        (&[("if-none-match", &listed)], 304),
        (&[("if-none-match", &with_comma)], 304),
        (&[("if-none-match", &glued)], 304),
        (&[("if-none-match", "*")], 304),
        (&[("if-none-match", " * ")], 304),
        (&[("if-none-match", "\"x\""), ("if-none-match", &tag)], 304),
        (&[("if-none-match", "\"x\"")], 200),
        (&[("if-none-match", "\"\"")], 200),
        (&[("if-none-match", "\"")], 200),
        (&[("if-none-match", "")], 200),
        (&[("if-none-match", "W/")], 200),
        (&[("if-none-match", &unquoted)], 200),
        (&[("if-none-match", &after_mistake)], 200),
        (&[("if-match", &tag)], 200),
        (&[("if-match", &listed)], 200),
        (&[("if-match", "*")], 200),
        (&[("if-match", &weak)], 412),
        (&[("if-match", "\"x\"")], 412),
        (&[("if-match", "")], 412),
        (&[("if-match", &tag), ("if-none-match", &tag)], 304),
        (&[("if-match", "\"x\""), ("if-none-match", &tag)], 412),
        (&[("if-modified-since", EXACTLY)], 304),
        (&[("if-modified-since", BEFORE)], 200),
        // Later than the file: a release that is live again is older than what the client has.
        (&[("if-modified-since", AFTER)], 200),
        (&[("if-modified-since", "yesterday")], 200),
        (&[("if-modified-since", "")], 200),
        (&[("if-modified-since", EXACTLY), ("if-none-match", "\"x\"")], 200),
        (&[("if-modified-since", BEFORE), ("if-none-match", &tag)], 304),
        (&[("if-unmodified-since", EXACTLY)], 200),
        (&[("if-unmodified-since", AFTER)], 200),
        (&[("if-unmodified-since", BEFORE)], 412),
        (&[("if-unmodified-since", "yesterday")], 200),
        (&[("if-unmodified-since", BEFORE), ("if-match", &tag)], 200),
    ] {
        for method in [Method::GET, Method::HEAD] {
            let answer = site.ask(method.clone(), "/a.txt", headers).await;
            assert_eq!(answer.status, status, "{method} {headers:?}");
            let has_body = status == 200 && method == Method::GET;
            assert_eq!(answer.text(), if has_body { "content" } else { "" }, "{method} {headers:?}");
        }
    }
}

#[tokio::test]
async fn who_has_the_file_already_gets_its_headers() {
    let site = site();
    let whole = site.get("/a.txt").await;
    let known = site.get_with("/a.txt", &[("if-none-match", whole.tag())]).await;
    for name in ["etag", "last-modified", "cache-control", "vary"] {
        assert_eq!(known.header(name), whole.header(name), "{name}");
        assert_ne!(known.header(name), "", "{name}");
    }
    for name in ["content-type", "content-length"] {
        assert_eq!(known.header(name), "", "{name}");
    }
}

#[tokio::test]
async fn a_header_that_is_no_text_is_no_match() {
    let site = site();
    let request = http::Request::get("/a.txt")
        .header("if-none-match", http::HeaderValue::from_bytes(b"\"\xff\"").unwrap())
        .header("range", http::HeaderValue::from_bytes(b"bytes=\xff").unwrap());
    let answer = launchway_proxy::site::serve(site.folder(), &request.body(()).unwrap()).await;
    assert_eq!(answer.status(), 200);
}
