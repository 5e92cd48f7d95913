//! A build that starts as many processes as it can fails, and does not affect others.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use super::{
    harness::{Harness, address_of, page_at, spec, text},
    repository::web_server,
};

#[test]
fn a_fork_bomb_in_a_build_fails_that_deployment_only() {
    let harness = Harness::on_sqlite(&[("LAUNCHWAY_BUILDER", "legacy"), ("LAUNCHWAY_BUILD_PIDS", "300")]);
    let other = harness.repository("other");
    other.commit_page("the other page");
    let (_, deployment) = harness.create_live(&spec("other", &other));
    let address = address_of(&text(&deployment["container_id"]));

    let ended = Arc::new(AtomicBool::new(false));
    let visitor = thread::spawn({
        let ended = ended.clone();
        move || {
            let mut pages = Vec::new();
            while !ended.load(Ordering::Relaxed) {
                pages.push(page_at(&address, "/"));
                thread::sleep(Duration::from_millis(50));
            }
            pages
        }
    });
    let bomb = harness.repository("bomb");
    let step = "RUN i=0; while [ $i -lt 3000 ]; do sleep 30 & i=$((i+1)); echo st''arted $i; done; wait";
    bomb.write("index.html", "a page").write("Dockerfile", web_server(step)).commit();
    let (_, deployment) = harness.create(&spec("bomb", &bomb));
    let story = harness.failed(&deployment);
    ended.store(true, Ordering::Relaxed);
    let pages = visitor.join().unwrap();

    let last = story.lines().last().unwrap();
    assert!(last.starts_with("error: ") && last.contains("300 processes and threads"), "{story}");
    assert!(story.matches("build: started ").count() < 300, "{story}");
    assert!(pages.len() > 5, "{pages:?}");
    assert!(pages.iter().all(|page| page.as_deref() == Some("the other page")), "{pages:?}");
}
