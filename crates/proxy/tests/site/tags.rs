//! The cases in which a tag changes, and those in which it does not.

use std::{
    fs::{File, FileTimes},
    time::{Duration, SystemTime},
};

use crate::site::Site;

fn set_time(site: &Site, path: &str, time: SystemTime) {
    let file = File::options().write(true).open(site.path(path)).unwrap();
    file.set_times(FileTimes::new().set_modified(time)).unwrap();
}

async fn tag(site: &Site, path: &str) -> String {
    site.get(path).await.tag().to_owned()
}

#[tokio::test]
async fn a_tag_is_strong_and_shows_nothing_of_the_machine() {
    let site = Site::with(&[("a.txt", "one")]);
    let tag = tag(&site, "/a.txt").await;
    let inner = tag.strip_prefix('"').unwrap().strip_suffix('"').unwrap();
    assert_eq!(inner.len(), 22);
    assert!(inner.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
}

#[tokio::test]
async fn an_unchanged_file_keeps_its_tag_in_the_next_release() {
    let (old, new) = (Site::with(&[("a.txt", "same")]), Site::with(&[("b/c.txt", "same")]));
    set_time(&old, "a.txt", SystemTime::now() - Duration::from_secs(86_400));
    assert_eq!(tag(&old, "/a.txt").await, tag(&new, "/b/c.txt").await);
}

#[tokio::test]
async fn files_of_the_same_size_and_time_differ() {
    let site = Site::with(&[("a.txt", "one"), ("b.txt", "two")]);
    let time = SystemTime::now() - Duration::from_secs(5);
    set_time(&site, "a.txt", time);
    set_time(&site, "b.txt", time);
    assert_ne!(tag(&site, "/a.txt").await, tag(&site, "/b.txt").await);
}

#[tokio::test]
async fn a_file_that_is_overwritten_at_once_has_another_tag_each_time() {
    let site = Site::with(&[]);
    let time = SystemTime::now() - Duration::from_secs(5);
    let mut tags = Vec::new();
    for round in 0..50 {
        site.write("a.txt", format!("{round:02}"));
        set_time(&site, "a.txt", time);
        tags.push(tag(&site, "/a.txt").await);
    }
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 50);
}

#[tokio::test]
async fn an_empty_file_has_a_tag() {
    let site = Site::with(&[("a.txt", "")]);
    let answer = site.get("/a.txt").await;
    assert_eq!((answer.status.as_u16(), answer.header("content-length")), (200, "0"));
    assert_eq!(answer.tag().len(), 24);
}

#[tokio::test]
async fn a_file_too_large_to_be_read_is_identified_by_its_state() {
    let (old, new) = (Site::with(&[]), Site::with(&[]));
    for site in [&old, &new] {
        File::create(site.path("large.bin")).unwrap().set_len(32 * 1024 * 1024 + 1).unwrap();
    }
    let before = old.ask(http::Method::HEAD, "/large.bin", &[]).await;
    let again = old.ask(http::Method::HEAD, "/large.bin", &[]).await;
    let other = new.ask(http::Method::HEAD, "/large.bin", &[]).await;
    assert_eq!(before.tag(), again.tag());
    assert_ne!(before.tag(), other.tag());
    set_time(&old, "large.bin", SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000));
    assert_ne!(old.ask(http::Method::HEAD, "/large.bin", &[]).await.tag(), before.tag());
}

#[tokio::test]
async fn a_file_just_small_enough_is_identified_by_its_content() {
    let (old, new) = (Site::with(&[]), Site::with(&[]));
    for site in [&old, &new] {
        File::create(site.path("large.bin")).unwrap().set_len(32 * 1024 * 1024).unwrap();
    }
    let before = old.ask(http::Method::HEAD, "/large.bin", &[]).await;
    assert_eq!(new.ask(http::Method::HEAD, "/large.bin", &[]).await.tag(), before.tag());
}

#[tokio::test]
async fn an_impossible_time_is_not_shown() {
    let site = Site::with(&[("a.txt", "a")]);
    let known = SystemTime::UNIX_EPOCH + Duration::from_secs(946_684_800);
    for (time, expected) in [
        (SystemTime::UNIX_EPOCH, ""),
        (SystemTime::UNIX_EPOCH + Duration::from_secs(499_162_500), ""),
        (known - Duration::from_secs(1), ""),
        (known, "Sat, 01 Jan 2000 00:00:00 GMT"),
        (known + Duration::from_millis(1_999), "Sat, 01 Jan 2000 00:00:01 GMT"),
        (SystemTime::now() + Duration::from_secs(3600), ""),
    ] {
        set_time(&site, "a.txt", time);
        assert_eq!(site.get("/a.txt").await.header("last-modified"), expected, "{time:?}");
    }
}
