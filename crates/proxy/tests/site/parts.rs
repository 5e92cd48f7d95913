//! Requests for a part of a file.

use http::Method;

use crate::site::Site;

#[tokio::test]
async fn a_part_is_sent_with_its_place_in_the_whole() {
    let site = Site::with(&[("a.txt", "0123456789")]);
    for (range, status, content, place) in [
        ("bytes=0-0", 206, "0", "bytes 0-0/10"),
        ("bytes=0-9", 206, "0123456789", "bytes 0-9/10"),
        ("bytes=3-5", 206, "345", "bytes 3-5/10"),
        ("bytes=9-", 206, "9", "bytes 9-9/10"),
        ("bytes=8-99", 206, "89", "bytes 8-9/10"),
        ("bytes=-3", 206, "789", "bytes 7-9/10"),
        ("bytes=-99", 206, "0123456789", "bytes 0-9/10"),
        ("bytes=10-", 416, "", "bytes */10"),
        ("bytes=-0", 416, "", "bytes */10"),
        ("bytes=5-4", 200, "0123456789", ""),
        ("bytes=0-1,3-4", 200, "0123456789", ""),
        ("lines=0-1", 200, "0123456789", ""),
        ("nonsense", 200, "0123456789", ""),
    ] {
        let answer = site.get_with("/a.txt", &[("range", range)]).await;
        assert_eq!(answer.status, status, "{range}");
        assert_eq!(answer.text(), content, "{range}");
        assert_eq!(answer.header("content-range"), place, "{range}");
        assert_eq!(answer.header("content-length"), content.len().to_string(), "{range}");
        assert_eq!(answer.header("accept-ranges"), "bytes", "{range}");
        assert_ne!(answer.tag(), "", "{range}");
    }
}

#[tokio::test]
async fn an_empty_file_has_no_parts() {
    let site = Site::with(&[("a.txt", "")]);
    for range in ["bytes=0-", "bytes=0-0", "bytes=-1"] {
        let answer = site.get_with("/a.txt", &[("range", range)]).await;
        assert_eq!((answer.status.as_u16(), answer.header("content-range")), (416, "bytes */0"), "{range}");
    }
}

#[tokio::test]
async fn a_head_has_no_parts() {
    let site = Site::with(&[("a.txt", "0123456789")]);
    let answer = site.ask(Method::HEAD, "/a.txt", &[("range", "bytes=0-0")]).await;
    assert_eq!((answer.status.as_u16(), answer.header("content-length")), (200, "10"));
}

#[tokio::test]
async fn a_part_goes_only_to_who_has_the_rest_of_this_content() {
    let site = Site::with(&[("a.txt", "0123456789")]);
    let whole = site.get("/a.txt").await;
    let (tag, weak) = (whole.tag(), format!("W/{}", whole.tag()));
    for (if_range, status) in
        [(tag, 206), (&*weak, 200), ("\"x\"", 200), (whole.header("last-modified"), 200), ("", 200)]
    {
        let answer = site.get_with("/a.txt", &[("range", "bytes=0-1"), ("if-range", if_range)]).await;
        assert_eq!(answer.status, status, "{if_range}");
    }
    // Beyond the end of another content is not beyond the end of this.
    let answer = site.get_with("/a.txt", &[("range", "bytes=99-"), ("if-range", "\"x\"")]).await;
    assert_eq!(answer.status, 200);
    let answer = site.get_with("/a.txt", &[("range", "bytes=99-"), ("if-none-match", tag)]).await;
    assert_eq!(answer.status, 304);
}

#[tokio::test]
async fn files_of_every_size_around_a_chunk_arrive_whole_and_in_part() {
    const CHUNK: usize = 64 * 1024;
    let site = Site::with(&[]);
    for size in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK + 7] {
        let content: Vec<u8> = (0..size).map(|place| (place % 251) as u8).collect();
        site.write("a.bin", &content);
        assert!(site.get("/a.bin").await.body == content, "{size}");
        if size > 2 {
            let range = format!("bytes=1-{}", size - 2);
            let part = site.get_with("/a.bin", &[("range", &range)]).await;
            assert!(part.body == content[1..size - 1], "{size}");
        }
    }
}
