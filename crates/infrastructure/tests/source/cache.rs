//! The cache between fetches.

use std::{fs, path::PathBuf, sync::Arc};

use launchway_domain::{
    deployments::{Owner, SourceFetcher as _},
    ids::OrganizationId,
};
use launchway_testkit::ids::id_of;

use crate::{
    arena::{Arena, Recorder, fetch, owner, source},
    servers::{Manner, Web},
};

/// Incompressible bytes.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    (0..length).map(|_| next()).collect()
}

fn caches(arena: &Arena) -> Vec<PathBuf> {
    fs::read_dir(arena.path("cache")).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[tokio::test]
async fn a_second_fetch_brings_only_what_is_new() {
    let arena = Arena::new();
    let repository = arena.repository("shop");
    repository.write("large", noise(2_000_000));
    repository.commit("large");
    let web = Web::serve(&arena.path("repositories"), Manner::Open);
    let (fetcher, source) = (arena.fetcher_to(web.port), source(&web.url("shop/.git")));
    fetch(&fetcher, &source, "one").await.unwrap();
    let first = web.sent();
    assert!(first > 2_000_000);
    repository.write("index.html", "newer");
    repository.commit("small");
    let checkout = fetch(&fetcher, &source, "two").await.unwrap();
    assert!(web.sent() - first < 20_000, "{} bytes came", web.sent() - first);
    assert_eq!(fs::read_to_string(checkout.root.join("index.html")).unwrap(), "newer");
    assert_eq!(fs::read(checkout.root.join("large")).unwrap(), noise(2_000_000));
}

#[tokio::test]
async fn organizations_share_no_cache() {
    let arena = Arena::new();
    let (repository, fetcher) = (arena.repository("shop"), arena.fetcher());
    for organization in ["acme", "umbrella"] {
        let owner = Owner { organization: id_of(organization).into(), ..owner(organization) };
        let output = Arc::new(Recorder::default());
        fetcher.fetch(&repository.source(), &repository.head(), &owner, output).await.unwrap();
    }
    assert_eq!(caches(&arena).len(), 2);
    let organization: OrganizationId = id_of("acme").into();
    fetcher.forget_repository(organization, &repository.source().url).await.unwrap();
    fetcher.forget_repository(organization, &repository.source().url).await.unwrap();
    assert_eq!(caches(&arena).len(), 1);
}

#[tokio::test]
async fn a_damaged_cache_is_made_anew() {
    type Damage = fn(&std::path::Path);
    let damages: [(&str, Damage); 4] = [
        ("no packs", |cache| fs::remove_dir_all(cache.join("objects/pack")).unwrap()),
        ("odd settings", |cache| fs::write(cache.join("config"), "[core\n").unwrap()),
        ("an odd HEAD", |cache| fs::write(cache.join("HEAD"), "\0\0\0").unwrap()),
        ("cut packs", |cache| {
            for entry in fs::read_dir(cache.join("objects/pack")).unwrap() {
                fs::remove_file(entry.as_ref().unwrap().path()).unwrap();
                fs::write(entry.unwrap().path(), "PACK").unwrap();
            }
        }),
    ];
    for (name, damage) in damages {
        let arena = Arena::new();
        let (repository, fetcher) = (arena.repository("shop"), arena.fetcher());
        fetch(&fetcher, &repository.source(), "one").await.unwrap();
        damage(&caches(&arena)[0]);
        let checkout = fetch(&fetcher, &repository.source(), "two").await;
        assert!(
            checkout.as_ref().is_ok_and(|checkout| checkout.root.join("index.html").exists()),
            "{name}: {checkout:?}"
        );
    }
}

#[tokio::test]
async fn concurrent_fetches_of_a_repository_get_their_own_commits() {
    let arena = Arena::new();
    let (repository, fetcher) = (arena.repository("shop"), Arc::new(arena.fetcher()));
    let mut fetches = tokio::task::JoinSet::new();
    for number in 0..8 {
        let branch = format!("b{}", number % 4);
        if number < 4 {
            repository.git(&["checkout", "--quiet", "-b", &branch]);
            repository.write("branch", &branch);
            repository.commit(&branch);
        }
        let mut source = repository.source();
        source.branch = branch.parse().unwrap();
        let fetcher = fetcher.clone();
        fetches
            .spawn(async move { (fetch(&fetcher, &source, &format!("d{number}")).await.unwrap(), branch) });
    }
    for (checkout, branch) in fetches.join_all().await {
        assert_eq!(fs::read_to_string(checkout.root.join("branch")).unwrap(), branch);
    }
    assert_eq!(caches(&arena).len(), 1);
}

#[tokio::test]
async fn a_cache_does_not_grow_for_ever() {
    let arena = Arena::new();
    let (repository, fetcher) = (arena.repository("shop"), arena.fetcher());
    fetch(&fetcher, &repository.source(), "one").await.unwrap();
    let packs = caches(&arena)[0].join("objects/pack");
    for number in 0..60 {
        fs::write(packs.join(format!("old-{number}.pack")), "").unwrap();
    }
    repository.commit("second");
    fetch(&fetcher, &repository.source(), "two").await.unwrap();
    assert!(fs::read_dir(&packs).unwrap().count() < 10);
}

#[tokio::test]
async fn a_cache_that_a_fetch_was_cut_off_in_is_not_used() {
    let arena = Arena::new();
    let (repository, fetcher) = (arena.repository("shop"), arena.fetcher());
    let cut_off = || {
        let cache = caches(&arena).remove(0);
        for name in ["unfinished", "shallow.lock", "objects/pack/tmp_pack_1"] {
            fs::write(cache.join(name), "").unwrap();
        }
        cache
    };
    fetch(&fetcher, &repository.source(), "one").await.unwrap();
    let cache = cut_off();
    repository.commit("second");
    fetch(&fetcher, &repository.source(), "two").await.unwrap();
    assert!(!cache.join("objects/pack/tmp_pack_1").exists() && !cache.join("shallow.lock").exists());
    cut_off();
    fetcher.remove_work_folders().await.unwrap();
    assert_eq!(caches(&arena), Vec::<PathBuf>::new());
}
