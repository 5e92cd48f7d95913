//! The responses to paths.

use http::Method;
use launchway_proxy::site::serve;

use crate::site::Site;

const FILES: &[(&str, &str)] = &[
    ("index.html", "home"),
    ("about.html", "about"),
    ("docs/index.html", "docs"),
    ("docs/a b.txt", "space"),
    ("docs/café.txt", "accent"),
    ("docs/100%.txt", "percent"),
    ("docs/%2e%2e", "literal"),
    ("evil.example/index.html", "folder like a host"),
    ("a:b/index.html", "colon"),
    ("bare/file.txt", "no index here"),
    ("odd/index.html/x", "index is a folder"),
    ("LICENSE", "license"),
    (".env", "hidden"),
    (".git/config", "hidden"),
    ("docs/.htaccess", "hidden"),
    (".well-known/security.txt", "contact"),
    (".well-known/.htpasswd", "hidden"),
    ("docs/.well-known/x", "hidden"),
];

/// Path, status, and the body or the location of the redirect.
const ROWS: &[(&str, u16, &str)] = &[
    ("/", 200, "home"),
    ("/?a=b", 200, "home"),
    ("/index.html", 200, "home"),
    ("/about.html", 200, "about"),
    ("/about.html?v=1", 200, "about"),
    ("/LICENSE", 200, "license"),
    ("/docs/", 200, "docs"),
    ("/docs/index.html", 200, "docs"),
    ("/docs/a%20b.txt", 200, "space"),
    ("/docs/caf%C3%A9.txt", 200, "accent"),
    ("/docs/100%.txt", 200, "percent"),
    ("/docs/100%25.txt", 200, "percent"),
    ("/docs/%252e%252e", 200, "literal"),
    ("/%64ocs/", 200, "docs"),
    ("/.well-known/security.txt", 200, "contact"),
    ("/%2ewell-known/security.txt", 200, "contact"),
    ("/docs", 308, "./docs/"),
    ("/docs?a=b&c=//evil.example", 308, "./docs/?a=b&c=//evil.example"),
    ("/%64ocs", 308, "./docs/"),
    ("/evil.example", 308, "./evil.example/"),
    ("/a:b", 308, "./a%3Ab/"),
    ("http://other.example/docs", 308, "./docs/"),
    ("//evil.example", 404, ""),
    ("//evil.example/", 404, ""),
    ("///evil.example", 404, ""),
    ("//", 404, ""),
    ("/docs//", 404, ""),
    ("/docs//index.html", 404, ""),
    ("/about.html/", 404, ""),
    ("/about.html/x", 404, ""),
    ("/about", 404, ""),
    ("/missing", 404, ""),
    ("/missing.js", 404, ""),
    ("/bare", 404, ""),
    ("/bare/", 404, ""),
    ("/odd", 404, ""),
    ("/odd/", 404, ""),
    ("/INDEX.HTML", 404, ""),
    ("/index.html%20", 404, ""),
    ("/index.html%00", 404, ""),
    ("/index.html%00.txt", 404, ""),
    ("/../secret.txt", 404, ""),
    ("/..%2fsecret.txt", 404, ""),
    ("/%2e%2e/secret.txt", 404, ""),
    ("/%2e%2e%2fsecret.txt", 404, ""),
    ("/.%2e/secret.txt", 404, ""),
    ("/%252e%252e/secret.txt", 404, ""),
    ("/%c0%ae%c0%ae/secret.txt", 404, ""),
    ("/%uff0e%uff0e/secret.txt", 404, ""),
    ("/docs/../../secret.txt", 404, ""),
    ("/docs/../index.html", 404, ""),
    ("/docs/%2e%2e/index.html", 404, ""),
    ("/./index.html", 404, ""),
    ("/docs%2findex.html", 404, ""),
    ("/docs%5cindex.html", 404, ""),
    ("/..%5csecret.txt", 404, ""),
    ("/%2fetc/passwd", 404, ""),
    ("//etc/passwd", 404, ""),
    ("/.env", 404, ""),
    ("/%2eenv", 404, ""),
    ("/.git/config", 404, ""),
    ("/.git", 404, ""),
    ("/docs/.htaccess", 404, ""),
    ("/.well-known/.htpasswd", 404, ""),
    ("/.well-known/../.env", 404, ""),
    ("/docs/.well-known/x", 404, ""),
    ("/.well-known", 404, ""),
];

#[tokio::test]
async fn every_path_leads_to_its_file_or_nowhere() {
    let site = Site::with(FILES);
    for (path, status, expected) in ROWS {
        let answer = site.get(path).await;
        assert_eq!(answer.status, *status, "{path}");
        match status {
            200 => assert_eq!(answer.text(), *expected, "{path}"),
            308 => assert_eq!(answer.header("location"), *expected, "{path}"),
            _ => assert!(!answer.text().contains("secret") && !answer.text().contains("hidden"), "{path}"),
        }
    }
}

#[tokio::test]
async fn a_name_that_no_file_system_takes_is_missing() {
    let site = Site::with(FILES);
    for path in ["/".to_owned() + &"a".repeat(300), "/a".repeat(3000), "/%FF%FE".to_owned()] {
        assert_eq!(site.get(&path).await.status, 404, "{}", &path[..5]);
    }
}

#[tokio::test]
async fn a_head_is_that_of_get_without_a_body() {
    let site = Site::with(FILES);
    for (path, ..) in ROWS.iter().chain(&[("/docs/a%20b.txt", 0, "")]) {
        let (get, head) = (site.get(path).await, site.ask(Method::HEAD, path, &[]).await);
        assert_eq!(head.status, get.status, "{path}");
        assert_eq!(head.headers, get.headers, "{path}");
        assert!(head.body.is_empty(), "{path}");
        assert_eq!(get.header("content-length"), get.body.len().to_string(), "{path}");
    }
}

#[tokio::test]
async fn a_site_can_only_be_read() {
    let site = Site::with(FILES);
    for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PURGE"] {
        let answer = site.ask(method.parse().unwrap(), "/", &[]).await;
        assert_eq!(answer.status, 405, "{method}");
        assert_eq!(answer.header("allow"), "GET, HEAD", "{method}");
    }
}

#[tokio::test]
async fn every_response_forbids_sniffing_and_requires_revalidation() {
    let site = Site::with(FILES);
    for (path, caching) in
        [("/", "no-cache"), ("/docs", "no-cache"), ("/docs/a%20b.txt", "no-cache"), ("/missing", "no-store")]
    {
        let answer = site.get(path).await;
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(answer.header("cache-control"), caching, "{path}");
    }
}

#[tokio::test]
async fn a_browser_s_application_answers_what_is_no_file() {
    let site = Site::with(&[("200.html", "application"), ("app.js", "script"), ("docs/x.txt", "x")]);
    let page = "text/html,application/xhtml+xml,*/*;q=0.8";
    for (path, accept, status, expected) in [
        ("/", page, 200, "application"),
        ("/users/7", page, 200, "application"),
        ("/users/7", "*/*", 200, "application"),
        ("/users/7/", "*/*", 200, "application"),
        ("/users/ada.lovelace", page, 200, "application"),
        ("/users/ada.lovelace", "*/*", 404, ""),
        ("/users/ada.lovelace", "text/html;q=0", 404, ""),
        ("/app.js", "*/*", 200, "script"),
        ("/app.0123.js", "*/*", 404, ""),
        ("/docs", page, 200, "application"),
        ("/docs/", page, 200, "application"),
        ("/.env", page, 404, ""),
        ("/.git/config", page, 404, ""),
        ("//evil.example", page, 404, ""),
        ("/../secret", page, 404, ""),
    ] {
        let answer = site.get_with(path, &[("accept", accept)]).await;
        assert_eq!(answer.status, status, "{path} {accept}");
        if status == 200 {
            assert_eq!(answer.text(), expected, "{path} {accept}");
        }
    }
    let answer = site.get("/users/7").await;
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(answer.header("vary"), "Accept, Accept-Encoding");
    let again = site.get_with("/users/8", &[("if-none-match", answer.tag())]).await;
    assert_eq!(again.status, 304);
}

#[tokio::test]
async fn a_site_says_in_its_own_words_that_a_page_is_missing() {
    let site = Site::with(&[("404.html", "our own words"), ("index.html", "home")]);
    let answer = site.get_with("/missing.js", &[("range", "bytes=0-1"), ("if-none-match", "*")]).await;
    assert_eq!(answer.status, 404);
    assert_eq!(answer.text(), "our own words");
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(answer.tag(), "");
    assert_eq!(site.get("/404.html").await.status, 200);
    let head = site.ask(Method::HEAD, "/missing", &[]).await;
    assert_eq!((head.status.as_u16(), head.header("content-length")), (404, "13"));
}

#[tokio::test]
async fn a_release_that_is_gone_is_absent() {
    let site = Site::with(FILES);
    let file = http::Request::get("/").body(()).unwrap();
    for folder in [site.path("nowhere"), site.path("LICENSE")] {
        let answer = serve(&folder, &file).await;
        assert_eq!(answer.status(), 503);
        assert!(answer.headers().contains_key("retry-after"));
    }
    std::fs::remove_dir_all(site.folder()).unwrap();
    assert_eq!(site.get("/").await.status, 503);
}
