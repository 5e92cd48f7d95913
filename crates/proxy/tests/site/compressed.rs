//! Compressed files.

use crate::site::Site;

#[tokio::test]
async fn the_best_coding_that_a_client_takes_is_sent() {
    let site = Site::with(&[
        ("both.js", "plain"),
        ("both.js.br", "brotli"),
        ("both.js.gz", "gzip"),
        ("one.css", "plain"),
        ("one.css.gz", "gzip"),
        ("none.txt", "plain"),
        ("folder.js", "plain"),
        ("folder.js.br/x", ""),
        ("orphan.js.br", "brotli"),
        ("index.html", "plain"),
        ("index.html.br", "brotli"),
    ]);
    for (path, accepted, coding, content) in [
        ("/both.js", "gzip, deflate, br", "br", "brotli"),
        ("/both.js", "gzip, br;q=0.5", "gzip", "gzip"),
        ("/both.js", "gzip", "gzip", "gzip"),
        ("/both.js", "br;q=0, gzip", "gzip", "gzip"),
        ("/both.js", "*", "br", "brotli"),
        ("/both.js", "identity", "", "plain"),
        ("/both.js", "", "", "plain"),
        ("/both.js", "br;q=0, gzip;q=0", "", "plain"),
        ("/one.css", "br, gzip", "gzip", "gzip"),
        ("/none.txt", "br, gzip", "", "plain"),
        ("/folder.js", "br", "", "plain"),
        ("/", "br", "br", "brotli"),
        ("/both.js.br", "br", "", "brotli"),
    ] {
        let answer = site.get_with(path, &[("accept-encoding", accepted)]).await;
        assert_eq!(answer.text(), content, "{path} {accepted}");
        assert_eq!(answer.header("content-encoding"), coding, "{path} {accepted}");
        assert_eq!(answer.header("vary"), "Accept-Encoding", "{path} {accepted}");
    }
    assert_eq!(site.get_with("/orphan.js", &[("accept-encoding", "br")]).await.status, 404);
}

#[tokio::test]
async fn a_compressed_file_keeps_its_type_and_has_its_own_tag() {
    let site = Site::with(&[("a.js", "plain"), ("a.js.br", "brotli")]);
    let plain = site.get("/a.js").await;
    let coded = site.get_with("/a.js", &[("accept-encoding", "br")]).await;
    assert_eq!(coded.header("content-type"), plain.header("content-type"));
    assert_ne!(coded.tag(), plain.tag());
    let ask = |tag: String| {
        let site = &site;
        async move { site.get_with("/a.js", &[("accept-encoding", "br"), ("if-none-match", &tag)]).await }
    };
    assert_eq!(ask(coded.tag().to_owned()).await.status, 304);
    assert_eq!(ask(plain.tag().to_owned()).await.status, 200);
    let part = site.get_with("/a.js", &[("accept-encoding", "br"), ("range", "bytes=1-2")]).await;
    assert_eq!((part.text(), part.header("content-range")), ("ro", "bytes 1-2/6"));
}
