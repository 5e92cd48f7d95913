//! Published folders.

use std::{
    fs::{self, File, FileTimes},
    os::unix::{
        fs::{PermissionsExt as _, symlink},
        net::UnixListener,
    },
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use launchway_domain::{
    applications::BasePath,
    deployments::{Checkout, Owner, SiteStore as _, StepError},
};
use launchway_infrastructure::sites::{Readers, ReleaseFolders};
use launchway_testkit::ids::id_of;
use tempfile::TempDir;

use crate::arena::{owner, refusal};

/// A checkout with a site in `web`, and the folder of published sites.
struct Harness {
    folder: TempDir,
    sites: ReleaseFolders,
}

impl Harness {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("checkout/web/css")).unwrap();
        fs::write(folder.path().join("checkout/web/index.html"), "<h1>Hello</h1>").unwrap();
        fs::write(folder.path().join("checkout/web/css/a.css"), "a {}").unwrap();
        fs::write(folder.path().join("checkout/secret"), "hunter2").unwrap();
        let sites = ReleaseFolders::open(&folder.path().join("sites")).unwrap();
        Self { folder, sites }
    }

    fn web(&self, name: &str) -> PathBuf {
        self.folder.path().join("checkout/web").join(name)
    }

    async fn publish(&self, owner: &Owner, base_path: &str) -> Result<PathBuf, StepError> {
        let checkout = Checkout { root: self.folder.path().join("checkout") };
        self.sites.publish(owner, &checkout, &base_path.parse::<BasePath>().unwrap()).await
    }

    /// Returns every name in the folder of sites, at any depth.
    fn published(&self) -> Vec<PathBuf> {
        let mut folders = vec![self.folder.path().join("sites")];
        let mut found = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                } else {
                    found.push(entry.path());
                }
            }
        }
        found
    }
}

#[tokio::test]
async fn a_release_is_the_folder_as_it_is_with_the_times_of_its_files() {
    let harness = Harness::new();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    File::open(harness.web("index.html")).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
    let release = harness.publish(&owner("one"), "/web").await.unwrap();
    assert_eq!(fs::read_to_string(release.join("index.html")).unwrap(), "<h1>Hello</h1>");
    assert_eq!(fs::read_to_string(release.join("css/a.css")).unwrap(), "a {}");
    assert_eq!(fs::metadata(release.join("index.html")).unwrap().modified().unwrap(), time);
    assert_eq!(harness.published().len(), 2);
    let found = harness.sites.release(owner("one").application, owner("one").deployment).await;
    assert_eq!(found, Ok(Some(release)));
}

#[tokio::test]
async fn the_whole_repository_can_be_published() {
    let harness = Harness::new();
    let release = harness.publish(&owner("one"), "/").await.unwrap();
    assert!(release.join("web/index.html").exists() && release.join("secret").exists());
}

#[tokio::test]
async fn publishing_again_is_no_error_and_changes_nothing() {
    let harness = Harness::new();
    let first = harness.publish(&owner("one"), "/web").await.unwrap();
    fs::write(harness.web("index.html"), "changed").unwrap();
    let again = harness.publish(&Owner { attempt: 2, ..owner("one") }, "/web").await.unwrap();
    assert_eq!(first, again);
    assert_eq!(fs::read_to_string(first.join("index.html")).unwrap(), "<h1>Hello</h1>");
    let other = harness.publish(&owner("two"), "/web").await.unwrap();
    assert_eq!(fs::read_to_string(other.join("index.html")).unwrap(), "changed");
}

#[tokio::test]
async fn drafts_of_a_lost_process_are_no_releases_and_are_removed() {
    let harness = Harness::new();
    let owner = owner("one");
    let other = harness.publish(&Owner { application: id_of("blog").into(), ..owner }, "/web").await.unwrap();
    let left = [format!("sites/{}/.{}-1-1", owner.application, owner.deployment), "sites/.gone".to_owned()];
    for draft in left.iter().map(|draft| harness.folder.path().join(draft)) {
        fs::create_dir_all(&draft).unwrap();
        fs::write(draft.join("half"), "").unwrap();
    }
    assert_eq!(harness.sites.release(owner.application, owner.deployment).await, Ok(None));
    harness.sites.clear_drafts().await.unwrap();
    assert!(left.iter().all(|draft| !harness.folder.path().join(draft).exists()) && other.is_dir());
    let release = harness.publish(&owner, "/web").await.unwrap();
    assert!(!release.join("half").exists());
}

#[tokio::test]
async fn a_missing_folder_is_reported_by_name() {
    let harness = Harness::new();
    symlink("nowhere", harness.folder.path().join("checkout/dangling")).unwrap();
    for (path, expected) in [
        ("/missing", "There is no folder `/missing` in the repository."),
        ("/dangling", "There is no folder `/dangling` in the repository."),
        ("/secret", "`/secret` is not a folder of the repository."),
        ("/secret/x", "There is no folder `/secret/x` in the repository."),
    ] {
        assert_eq!(refusal(harness.publish(&owner("one"), path).await), expected);
    }
    assert_eq!(harness.published(), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn a_base_path_may_be_a_link_within_the_repository_only() {
    let harness = Harness::new();
    let checkout = harness.folder.path().join("checkout");
    symlink("web", checkout.join("public")).unwrap();
    symlink("/etc", checkout.join("etc")).unwrap();
    symlink("..", checkout.join("up")).unwrap();
    let release = harness.publish(&owner("one"), "/public").await.unwrap();
    assert!(release.join("index.html").is_file());
    for path in ["/etc", "/up", "/up/sites", "/etc/ssl"] {
        let message = refusal(harness.publish(&owner("two"), path).await);
        assert!(
            message.ends_with("is outside the repository.") || message.starts_with("There is no"),
            "{message}"
        );
    }
    assert_eq!(harness.sites.release(owner("two").application, owner("two").deployment).await, Ok(None));
}

#[tokio::test]
async fn links_within_the_folder_are_kept() {
    let harness = Harness::new();
    symlink("index.html", harness.web("home.html")).unwrap();
    symlink("../index.html", harness.web("css/home.html")).unwrap();
    symlink("css", harness.web("styles")).unwrap();
    symlink("missing", harness.web("dangling")).unwrap();
    symlink("loop", harness.web("loop")).unwrap();
    let release = harness.publish(&owner("one"), "/web").await.unwrap();
    for name in ["home.html", "css/home.html", "styles/home.html"] {
        assert_eq!(fs::read_to_string(release.join(name)).unwrap(), "<h1>Hello</h1>", "{name}");
    }
    assert!(release.join("home.html").is_symlink());
    // What leads nowhere is not there either way.
    assert!(!release.join("dangling").is_symlink() && !release.join("loop").is_symlink());
}

#[tokio::test]
async fn rejects_a_link_out_of_the_folder_and_publishes_nothing() {
    let absolute = |harness: &Harness| harness.web("index.html");
    let through_the_checkout = |_: &Harness| PathBuf::from("../../web/index.html");
    type Target<'a> = (&'a str, &'a dyn Fn(&Harness) -> PathBuf);
    let targets: [Target<'_>; 7] = [
        ("a file of this machine", &|_| "/etc/passwd".into()),
        ("a file beside the folder", &|_| "../../secret".into()),
        ("the root", &|_| "/".into()),
        ("another release", &|harness| harness.folder.path().join("sites")),
        ("the checkout by its whole path", &absolute),
        ("the checkout by way of its parent", &through_the_checkout),
        ("what may be there tomorrow", &|_| "/no/such/file".into()),
    ];
    for (name, target) in targets {
        let harness = Harness::new();
        symlink(target(&harness), harness.web("css/leak")).unwrap();
        let message = refusal(harness.publish(&owner("one"), "/web").await);
        assert_eq!(message, "The link `/css/leak` points outside the published folder.", "{name}");
        assert_eq!(harness.published(), Vec::<PathBuf>::new(), "{name}");
    }
}

#[tokio::test]
async fn rejects_a_link_out_of_the_folder_through_another_link() {
    let harness = Harness::new();
    symlink("..", harness.web("up")).unwrap();
    symlink("up/secret", harness.web("leak")).unwrap();
    let message = refusal(harness.publish(&owner("one"), "/web").await);
    assert!(message.ends_with("points outside the published folder."), "{message}");
    assert_eq!(harness.published(), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn what_is_no_file_is_refused_by_name() {
    let harness = Harness::new();
    let _listener = UnixListener::bind(harness.web("socket")).unwrap();
    let message = refusal(harness.publish(&owner("one"), "/web").await);
    assert_eq!(message, "`/socket` is neither a file nor a folder.");
}

#[tokio::test]
async fn removing_an_application_removes_only_its_own_releases() {
    let harness = Harness::new();
    for name in ["one", "two"] {
        harness.publish(&owner(name), "/web").await.unwrap();
    }
    let other = Owner { application: id_of("blog").into(), ..owner("three") };
    let kept = harness.publish(&other, "/web").await.unwrap();
    harness.sites.remove(owner("one").application).await.unwrap();
    harness.sites.remove(owner("one").application).await.unwrap();
    assert_eq!(harness.sites.release(owner("one").application, owner("one").deployment).await, Ok(None));
    assert!(kept.is_dir());
    assert_eq!(fs::read_dir(harness.folder.path().join("sites")).unwrap().count(), 1);
}

#[tokio::test]
async fn a_release_is_never_seen_half_done() {
    let harness = Harness::new();
    for number in 0..500 {
        fs::write(harness.web(&format!("{number}")), "x").unwrap();
    }
    let place = |owner: &Owner| {
        harness.folder.path().join(format!("sites/{}/{}", owner.application, owner.deployment))
    };
    let whole = |path: &Path| fs::read_dir(path).map(Iterator::count);
    for (number, milliseconds) in (0..60).step_by(3).enumerate() {
        let owner = owner(&format!("deployment {number}"));
        let publishing = harness.publish(&owner, "/web");
        let _dropped = tokio::time::timeout(Duration::from_millis(milliseconds), publishing).await;
        if let Ok(files) = whole(&place(&owner)) {
            assert_eq!(files, 502);
        }
        harness.publish(&owner, "/web").await.unwrap();
        assert_eq!(whole(&place(&owner)).unwrap(), 502);
    }
}

#[tokio::test]
async fn releases_are_listed_and_withdrawn_one_by_one() {
    let harness = Harness::new();
    let (one, other) = (owner("one"), owner("other"));
    harness.publish(&one, "/web").await.unwrap();
    let kept = harness.publish(&other, "/web").await.unwrap();
    // What is on its way in or out is none.
    fs::create_dir_all(harness.folder.path().join("sites").join(format!("{}/.draft", one.application)))
        .unwrap();
    let mut expected = vec![(one.application, one.deployment), (other.application, other.deployment)];
    let mut found = harness.sites.releases().await.unwrap();
    expected.sort();
    found.sort();
    assert_eq!(found, expected);

    harness.sites.withdraw(one.application, one.deployment).await.unwrap();
    // Once more is no error.
    harness.sites.withdraw(one.application, one.deployment).await.unwrap();
    assert_eq!(harness.sites.releases().await.unwrap(), [(other.application, other.deployment)]);
    assert_eq!(harness.sites.release(one.application, one.deployment).await, Ok(None));
    assert!(kept.join("index.html").exists());
}

#[tokio::test]
async fn a_site_is_published_for_the_group_of_the_server() {
    let Harness { folder, sites } = Harness::new();
    let harness = Harness { folder, sites: sites.readable_by(Readers::Group).unwrap() };
    let release = harness.publish(&owner("one"), "/web").await.unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for folder in
        [harness.folder.path().join("sites"), release.parent().unwrap().to_owned(), release.join("css")]
    {
        assert_eq!(mode(&folder), 0o750, "{}", folder.display());
    }
    assert_eq!((mode(&release), mode(&release.join("index.html"))), (0o750, 0o640));
    assert_eq!(mode(&release.join("css/a.css")), 0o640);
}
