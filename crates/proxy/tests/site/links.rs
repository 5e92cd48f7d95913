//! Links, and entries that are neither a file nor a folder.

use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt as _, symlink},
        net::UnixListener,
    },
    time::Duration,
};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tokio::time::timeout;

use crate::site::Site;

fn make_pipe(site: &Site, path: &str) {
    mknodat(CWD, site.path(path), FileType::Fifo, Mode::RWXU, 0).unwrap();
}

#[tokio::test]
async fn a_link_is_followed_as_long_as_it_stays_inside() {
    let site = Site::with(&[("docs/index.html", "docs"), ("docs/deep/a.txt", "a")]);
    let absolute = site.path("docs/index.html");
    let outside = site.folder().parent().unwrap().join("secret.txt");
    for (name, target) in [
        ("file.html", "docs/index.html"),
        ("folder", "docs"),
        ("docs/up.txt", "../docs/deep/a.txt"),
        ("twice.html", "file.html"),
        ("out.txt", "../secret.txt"),
        ("out_and_in.html", "../release/docs/index.html"),
        ("passwd", "/etc/passwd"),
        ("root", "/"),
        ("parent", ".."),
        ("self", "self"),
        ("nowhere", "missing"),
        ("absolute.html", absolute.to_str().unwrap()),
        ("absolute.txt", outside.to_str().unwrap()),
        ("proc", "/proc/self/cwd"),
    ] {
        symlink(target, site.path(name)).unwrap();
    }
    for (path, status) in [
        ("/file.html", 200),
        ("/folder/", 200),
        ("/folder/deep/a.txt", 200),
        ("/docs/up.txt", 200),
        ("/twice.html", 200),
        ("/folder", 308),
        ("/out.txt", 404),
        ("/out_and_in.html", 404),
        ("/passwd", 404),
        ("/root/etc/passwd", 404),
        ("/root", 404),
        ("/parent/secret.txt", 404),
        ("/parent/release/docs/index.html", 404),
        ("/self", 404),
        ("/nowhere", 404),
        ("/absolute.html", 404),
        ("/absolute.txt", 404),
        ("/proc/Cargo.toml", 404),
    ] {
        let answer = site.get(path).await;
        assert_eq!(answer.status, status, "{path}");
        assert!(!answer.text().contains("secret"), "{path}");
    }
}

#[tokio::test]
async fn pages_of_the_site_itself_lead_nowhere_else_either() {
    let site = Site::with(&[]);
    for name in ["200.html", "404.html", "index.html"] {
        symlink("../secret.txt", site.path(name)).unwrap();
    }
    for path in ["/", "/missing", "/200.html"] {
        let answer = site.get(path).await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(!answer.text().contains("secret"), "{path}");
    }
}

#[tokio::test]
async fn nobody_waits_for_a_pipe_and_no_socket_or_device_is_read() {
    let site = Site::with(&[("index.html", "home")]);
    make_pipe(&site, "pipe");
    let _listener = UnixListener::bind(site.path("socket")).unwrap();
    symlink("/dev/zero", site.path("device")).unwrap();
    for path in ["/pipe", "/socket", "/device", "/pipe/"] {
        let answer = timeout(Duration::from_secs(10), site.get(path)).await.unwrap();
        assert_eq!(answer.status, 404, "{path}");
    }
}

#[tokio::test]
async fn a_pipe_in_place_of_a_coded_file_does_not_stand_in_the_way() {
    let site = Site::with(&[("a.txt", "plain")]);
    make_pipe(&site, "a.txt.gz");
    let asked = site.get_with("/a.txt", &[("accept-encoding", "gzip")]);
    assert_eq!(timeout(Duration::from_secs(10), asked).await.unwrap().text(), "plain");
}

#[tokio::test]
async fn a_file_that_may_not_be_read_is_missing() {
    let site = Site::with(&[("a.txt", "a")]);
    fs::set_permissions(site.path("a.txt"), fs::Permissions::from_mode(0o000)).unwrap();
    // Who runs as root may read everything.
    let may_read = fs::read(site.path("a.txt")).is_ok();
    assert_eq!(site.get("/a.txt").await.status, if may_read { 200 } else { 404 });
}
