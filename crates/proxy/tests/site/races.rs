//! Files that change while they are sent.

use std::fs;

use http::{Request, Response};
use http_body_util::BodyExt as _;
use launchway_proxy::{body::Body, site::serve};

use crate::site::Site;

const SIZE: usize = 1024 * 1024;

async fn begin(site: &Site) -> Response<Body> {
    let mut response = serve(site.folder(), &Request::get("/a.bin").body(()).unwrap()).await;
    let first = response.body_mut().frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(first, vec![b'1'; 64 * 1024]);
    response
}

#[tokio::test]
async fn a_file_that_is_replaced_is_sent_as_it_was() {
    let site = Site::with(&[]);
    site.write("a.bin", vec![b'1'; SIZE]);
    let response = begin(&site).await;
    site.write("new.bin", vec![b'2'; SIZE]);
    fs::rename(site.path("new.bin"), site.path("a.bin")).unwrap();
    let rest = response.into_body().collect().await.unwrap().to_bytes();
    assert!(rest == vec![b'1'; SIZE - 64 * 1024]);
}

#[tokio::test]
async fn a_release_that_is_removed_is_sent_to_the_end() {
    let site = Site::with(&[]);
    site.write("a.bin", vec![b'1'; SIZE]);
    let response = begin(&site).await;
    fs::remove_dir_all(site.folder()).unwrap();
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes().len(), SIZE - 64 * 1024);
}

#[tokio::test]
async fn a_file_that_grows_is_sent_as_long_as_was_said() {
    let site = Site::with(&[]);
    site.write("a.bin", vec![b'1'; SIZE]);
    let response = begin(&site).await;
    site.write("a.bin", vec![b'1'; 2 * SIZE]);
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes().len(), SIZE - 64 * 1024);
}

#[tokio::test]
async fn a_file_that_shrinks_ends_the_answer_with_an_error() {
    let site = Site::with(&[]);
    site.write("a.bin", vec![b'1'; SIZE]);
    let mut response = begin(&site).await;
    fs::File::options().write(true).open(site.path("a.bin")).unwrap().set_len(100_000).unwrap();
    assert!(response.body_mut().collect().await.is_err());
    assert!(response.body_mut().frame().await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_answer_is_of_one_version_and_has_its_tag() {
    let site = std::sync::Arc::new(Site::with(&[]));
    let versions = [vec![b'1'; 200_000], vec![b'2'; 200_000]];
    let mut tags = Vec::new();
    for version in &versions {
        site.write("a.bin", version);
        tags.push(site.get("/a.bin").await.tag().to_owned());
    }
    let asking = (0..4).map(|_| {
        let (site, tags) = (site.clone(), tags.clone());
        tokio::spawn(async move {
            for _ in 0..50 {
                let answer = site.get("/a.bin").await;
                assert!(answer.body.iter().all(|byte| *byte == answer.body[0]));
                assert_eq!(answer.tag(), tags[usize::from(answer.body[0] - b'1')]);
            }
        })
    });
    let asking: Vec<_> = asking.collect();
    for round in 0..100 {
        site.write("new.bin", &versions[round % 2]);
        fs::rename(site.path("new.bin"), site.path("a.bin")).unwrap();
        tokio::task::yield_now().await;
    }
    for task in asking {
        task.await.unwrap();
    }
}
