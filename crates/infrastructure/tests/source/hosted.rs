//! Repositories that users push to.

use std::{
    io::{Read as _, Write as _},
    sync::Arc,
};

use flate2::{Compression, write::GzEncoder};
use launchway_domain::{
    applications::GitUrl,
    deployments::{CommitHash, GitSource, SourceFetcher as _, StepError},
    idempotency::{BodyHash, IdempotencyKey},
    ids::ApplicationId,
    organizations::Scope,
    sources::{
        BlockId, FileList, FileMode, GitService, ListedFile, PendingSource, PushRequest, Received, Report,
        SourceRepositories as _, Upload, UploadCommit, branch_reference, packet, upload_reference,
    },
};
use launchway_infrastructure::git::{GitFetcher, HostedRepositories};
use launchway_testkit::ids::id_of;

use crate::arena::{Arena, Recorder, Repository, git_with_bytes, owner};

const MAIN: &str = "refs/heads/main";

fn app() -> ApplicationId {
    owner("one").application
}

async fn received(hosted: &HostedRepositories, bytes: &[u8]) -> Result<Received, StepError> {
    let mut spool = hosted.spool().await?;
    for piece in bytes.chunks(100_000) {
        spool.write(piece).await?;
    }
    spool.finish().await
}

/// The body of a push of `new` to a branch, with everything that it needs.
fn push_of(repository: &Repository, old: Option<&CommitHash>, new: &CommitHash, name: &str) -> Vec<u8> {
    let zeros = "0".repeat(40);
    let old = old.map_or(zeros.as_str(), CommitHash::as_str);
    let line = format!("{old} {new} {name}\0 report-status side-band-64k");
    let mut body = packet(line.as_bytes());
    body.extend(b"0000");
    let asked = format!("{new}\n");
    body.extend(git_with_bytes(
        &repository.path,
        &["pack-objects", "--revs", "--stdout", "--quiet"],
        asked.as_bytes(),
    ));
    body
}

async fn push(hosted: &HostedRepositories, body: &[u8]) -> Report {
    let request = PushRequest::parse(body).unwrap();
    let output = hosted.receive(app(), received(hosted, body).await.unwrap()).await.unwrap();
    Report::read(&output, &request)
}

#[tokio::test]
async fn a_push_is_stored_and_checked_out_by_its_commit() {
    let arena = Arena::new();
    let hosted = HostedRepositories::open(&arena.options()).unwrap();
    let repository = arena.repository("a");
    let first = repository.head();
    assert_eq!(hosted.resolve(app(), MAIN).await.unwrap(), None);
    let report = push(&hosted, &push_of(&repository, None, &first, MAIN)).await;
    assert!(report.accepts(MAIN), "{report:?}");
    assert_eq!(hosted.resolve(app(), MAIN).await.unwrap(), Some(first.clone()));
    repository.write("index.html", "second");
    let second = repository.commit("second");
    assert!(push(&hosted, &push_of(&repository, Some(&first), &second, MAIN)).await.accepts(MAIN));

    let fetcher = GitFetcher::open(arena.options()).unwrap();
    let source = source(app());
    assert_eq!(fetcher.head(&source).await, Ok(second.clone()));
    let earlier = fetcher.fetch(&source, &first, &owner("one"), Arc::new(Recorder::default())).await.unwrap();
    assert_eq!(std::fs::read_to_string(earlier.root.join("index.html")).unwrap(), "<h1>Hello</h1>\n");
    let foreign = GitSource { url: GitUrl::hosted(id_of("other").into()), ..source };
    let refused = fetcher.fetch(&foreign, &first, &owner("two"), Arc::new(Recorder::default())).await;
    assert!(matches!(refused, Err(StepError::Rejected(_))), "{refused:?}");
}

fn source(id: ApplicationId) -> GitSource {
    GitSource { url: GitUrl::hosted(id), branch: "main".parse().unwrap(), credentials: None, key: None }
}

#[tokio::test]
async fn a_stale_push_changes_nothing() {
    let arena = Arena::new();
    let hosted = HostedRepositories::open(&arena.options()).unwrap();
    let repository = arena.repository("a");
    let first = repository.head();
    push(&hosted, &push_of(&repository, None, &first, MAIN)).await;
    repository.write("b", "b");
    let second = repository.commit("second");
    let report = push(&hosted, &push_of(&repository, None, &second, MAIN)).await;
    assert!(!report.accepts(MAIN));
    assert_eq!(hosted.resolve(app(), MAIN).await.unwrap(), Some(first));
}

#[tokio::test]
async fn objects_with_unsafe_names_are_refused() {
    let arena = Arena::new();
    let hosted = HostedRepositories::open(&arena.options()).unwrap();
    let repository = arena.repository("a");
    for name in ["..", ".git", ".GIT", "git~1"] {
        let blob = repository.git_with_input(&["hash-object", "-w", "--stdin"], "x");
        let id = data_encoding::HEXLOWER.decode(blob.as_bytes()).unwrap();
        // Git itself refuses to write such a tree.
        let tree = [b"100644 ".as_slice(), name.as_bytes(), b"\0", &id].concat();
        let hash = ["hash-object", "-w", "-t", "tree", "--literally", "--stdin"];
        let tree = String::from_utf8(git_with_bytes(&repository.path, &hash, &tree)).unwrap();
        let tree = tree.trim().to_owned();
        let commit: CommitHash = repository.git(&["commit-tree", "-m", "x", &tree]).parse().unwrap();
        let report = push(&hosted, &push_of(&repository, None, &commit, MAIN)).await;
        assert!(!report.accepts(MAIN), "{name}");
        assert_eq!(hosted.resolve(app(), MAIN).await.unwrap(), None, "{name}");
        // Nothing of a refused push stays.
        let objects = arena.path("hosted").join(format!("{}.git/objects", app()));
        let packs = std::fs::read_dir(objects.join("pack")).map_or(0, Iterator::count);
        let names = std::fs::read_dir(&objects).unwrap().map(|entry| entry.unwrap().file_name());
        let names: Vec<_> = names.filter(|name| name != "pack" && name != "info").collect();
        assert_eq!((packs, names.len()), (0, 0), "{name}: {names:?}");
    }
}

#[tokio::test]
async fn what_is_larger_than_the_limit_is_refused() {
    let arena = Arena::new();
    let mut options = arena.options();
    options.limits.source_bytes = 10_000;
    let hosted = HostedRepositories::open(&options).unwrap();
    assert_eq!(received(&hosted, &[0; 10_000]).await.unwrap().bytes, 10_000);
    let refused = received(&hosted, &[0; 10_001]).await;
    assert!(matches!(&refused, Err(StepError::Rejected(why)) if why.contains("10000 bytes")), "{refused:?}");
}

#[tokio::test]
async fn clients_see_branches_and_tags_only() {
    let arena = Arena::new();
    let hosted = HostedRepositories::open(&arena.options()).unwrap();
    let empty = hosted.advertise(app(), GitService::ReceivePack, false).await.unwrap();
    assert!(String::from_utf8_lossy(&empty).contains("capabilities^{}"));
    let repository = arena.repository("a");
    let head = repository.head();
    push(&hosted, &push_of(&repository, None, &head, MAIN)).await;
    let hidden = upload_reference(&"main".parse().unwrap());
    assert!(hosted.move_reference(app(), &hidden, None, Some(head.clone())).await.unwrap());
    for service in [GitService::UploadPack, GitService::ReceivePack] {
        let shown = hosted.advertise(app(), service, false).await.unwrap();
        let shown = String::from_utf8_lossy(&shown).into_owned();
        assert!(shown.contains(MAIN) && !shown.contains("launchway"), "{shown}");
    }
    let output = Arc::new(Recorder::default());
    let wanted = [packet(format!("want {head}\n").as_bytes()), b"0000".to_vec(), packet(b"done\n")].concat();
    hosted.fetch(app(), wanted, false, output.clone()).await.unwrap();
    assert!(output.bytes().windows(4).any(|bytes| bytes == b"PACK"));
}

#[tokio::test]
async fn references_move_only_from_where_they_are() {
    let arena = Arena::new();
    let hosted = HostedRepositories::open(&arena.options()).unwrap();
    let repository = arena.repository("a");
    let first = repository.head();
    push(&hosted, &push_of(&repository, None, &first, MAIN)).await;
    repository.write("b", "b");
    let second = repository.commit("second");
    push(&hosted, &push_of(&repository, None, &second, "refs/heads/other")).await;
    let moved = async |old: Option<&CommitHash>, new: Option<&CommitHash>| {
        hosted.move_reference(app(), MAIN, old.cloned(), new.cloned()).await.unwrap()
    };
    assert!(!moved(None, Some(&second)).await);
    assert!(!moved(Some(&second), None).await);
    assert!(moved(Some(&first), Some(&second)).await);
    assert!(moved(Some(&second), None).await);
    assert_eq!(hosted.resolve(app(), MAIN).await.unwrap(), None);
    assert!(moved(None, Some(&first)).await);
}

fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

fn upload() -> UploadCommit {
    UploadCommit {
        name: "ada".to_owned(),
        email: "ada@example.com".to_owned(),
        at: chrono::DateTime::UNIX_EPOCH,
        message: "Upload\n".to_owned(),
    }
}

#[tokio::test]
async fn an_archive_becomes_a_commit_beside_the_branch() {
    let arena = Arena::new();
    let hosted = HostedRepositories::open(&arena.options()).unwrap();
    let files = [("index.html", "hello"), ("Dockerfile", "FROM x"), ("sub/ü", "deep")];
    let sent = received(&hosted, &archive(&files)).await.unwrap();
    assert_eq!(sent.sha256.len(), 64);
    let commit = hosted.import(app(), Upload::Archive(sent), &upload()).await.unwrap();
    assert_eq!(hosted.resolve(app(), MAIN).await.unwrap(), None);
    let top = hosted.top_files(app(), &commit).await.unwrap();
    let names: Vec<_> = top.iter().map(|file| (file.name.as_str(), file.text.as_deref())).collect();
    assert_eq!(names, [("Dockerfile", Some("FROM x")), ("index.html", None)]);
    let branch = "main".parse().unwrap();
    let reference = upload_reference(&branch);
    assert!(hosted.move_reference(app(), &reference, None, Some(commit.clone())).await.unwrap());
    let fetcher = GitFetcher::open(arena.options()).unwrap();
    assert_eq!(fetcher.head(&source(app())).await, Ok(commit.clone()));
    let tree =
        fetcher.fetch(&source(app()), &commit, &owner("one"), Arc::new(Recorder::default())).await.unwrap();
    assert_eq!(std::fs::read_to_string(tree.root.join("sub/ü")).unwrap(), "deep");
    // The same files at the same time are the same commit.
    let again = received(&hosted, &archive(&files)).await.unwrap();
    assert_eq!(hosted.import(app(), Upload::Archive(again), &upload()).await.unwrap(), commit);
    let hostile = received(&hosted, &archive(&[("a", "x")])[..20]).await.unwrap();
    assert!(matches!(
        hosted.import(app(), Upload::Archive(hostile), &upload()).await,
        Err(StepError::Rejected(_))
    ));
    assert_eq!(branch_reference(&branch), MAIN);
}

#[tokio::test]
async fn announcements_are_kept_until_they_are_ended() {
    let arena = Arena::new();
    let hosted = HostedRepositories::open(&arena.options()).unwrap();
    assert_eq!(hosted.pending().await.unwrap(), []);
    let hash = |digit: &str| digit.repeat(40).parse().unwrap();
    let pending = PendingSource {
        organization: owner("one").organization,
        application: app(),
        deployment: owner("one").deployment,
        reference: MAIN.to_owned(),
        old: Some(hash("a")),
        new: hash("b"),
        by: "ada \"x\"".to_owned(),
        digest: Some(format!("sha256:{}", "c".repeat(64)).parse().unwrap()),
        key: Some(IdempotencyKey {
            scope: Scope::of_record(owner("one").organization),
            user_id: id_of("ada").into(),
            operation: "POST /x".to_owned(),
            name: "a key".parse().unwrap(),
            body: BodyHash([7; 32]),
        }),
    };
    let other =
        PendingSource { deployment: owner("two").deployment, old: None, digest: None, ..pending.clone() };
    let other = PendingSource { key: None, ..other };
    hosted.begin(&pending).await.unwrap();
    hosted.begin(&other).await.unwrap();
    let again = HostedRepositories::open(&arena.options()).unwrap();
    let mut found = again.pending().await.unwrap();
    found.sort_by_key(|one| one.old.is_none());
    assert_eq!(found, [pending.clone(), other.clone()]);
    again.end(&pending).await.unwrap();
    again.end(&pending).await.unwrap();
    assert_eq!(hosted.pending().await.unwrap(), [other]);
}

#[tokio::test]
async fn a_removed_repository_is_gone_and_a_fresh_one_is_not_idle() {
    let arena = Arena::new();
    let hosted = HostedRepositories::open(&arena.options()).unwrap();
    let repository = arena.repository("a");
    push(&hosted, &push_of(&repository, None, &repository.head(), MAIN)).await;
    assert_eq!(hosted.idle().await.unwrap(), []);
    let path = arena.path("hosted").join(format!("{}.git", app()));
    let touch = ["-exec", "touch", "-d", "2 hours ago", "{}", "+"];
    assert!(std::process::Command::new("find").arg(&path).args(touch).status().unwrap().success());
    assert_eq!(hosted.idle().await.unwrap(), [app()]);
    hosted.remove(app()).await.unwrap();
    assert!(!path.exists());
}

#[tokio::test]
async fn a_body_is_hashed_and_has_no_name() {
    let arena = Arena::new();
    let hosted = HostedRepositories::open(&arena.options()).unwrap();
    let mut sent = received(&hosted, &[b'x'; 1_500_000]).await.unwrap();
    let mut bytes = Vec::new();
    sent.file.read_to_end(&mut bytes).unwrap();
    assert_eq!((bytes.len(), sent.bytes), (1_500_000, 1_500_000));
    assert!(arena.work().iter().all(|name| !name.contains("spool")), "{:?}", arena.work());
}

/// Sends files of ten bytes and their list, and imports it.
async fn import_list(hosted: &HostedRepositories, count: usize) -> Result<CommitHash, StepError> {
    let organization = owner("one").organization;
    let (mut files, mut content) = (Vec::new(), GzEncoder::new(Vec::new(), Compression::fast()));
    let mut add = |block: &[u8]| {
        content.write_all(&(block.len() as u32).to_be_bytes()).unwrap();
        content.write_all(block).unwrap();
        BlockId::of(block)
    };
    for number in 0..count {
        let id = add(format!("{number:010}").as_bytes());
        files.push(ListedFile { mode: FileMode::Regular, blocks: vec![id], path: format!("{number:05}") });
    }
    let list = FileList::new(&files);
    for block in list.levels().flatten() {
        add(&block.content);
    }
    let part = received(hosted, &content.finish().unwrap()).await?;
    hosted.store_blocks(organization, part).await?;
    let files = hosted.file_list(organization, list.digest()).await?.unwrap();
    assert_eq!(files.sha256(), list.digest().to_string());
    hosted.import(app(), files, &upload()).await
}

#[tokio::test]
async fn a_list_of_files_is_limited_as_an_archive_is() {
    let arena = Arena::new();
    let mut options = arena.options();
    options.limits.tree_entries = 1000;
    options.limits.tree_bytes = 9000;
    let hosted = HostedRepositories::open(&options).unwrap();
    import_list(&hosted, 900).await.unwrap();
    let refused = import_list(&hosted, 901).await;
    assert!(matches!(&refused, Err(StepError::Rejected(why)) if why.contains("9000 bytes")), "{refused:?}");
    options.limits.tree_bytes = 1 << 20;
    let hosted = HostedRepositories::open(&options).unwrap();
    import_list(&hosted, 1000).await.unwrap();
    let refused = import_list(&hosted, 1001).await;
    assert!(matches!(&refused, Err(StepError::Rejected(why)) if why.contains("1000 entries")), "{refused:?}");
}
