//! Manipulated archives: each is rejected, and nothing of it is written anywhere.

use std::{
    fs::{self, File},
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use launchway_infrastructure::{
    backup::{self, BackupError, Installation, Manifest, Origin},
    database::DatabaseUrl,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tar::EntryType;
use tempfile::TempDir;

use crate::{builders::Resident, fresh::Fresh};

contract!(
    what_was_backed_up_is_restored_as_it_was,
    archives_with_other_entries_are_refused,
    archives_with_other_manifests_are_refused,
    links_that_lead_out_of_a_site_are_refused,
    absurd_sizes_are_refused,
    rows_that_the_database_refuses_leave_nothing,
    an_archive_of_two_installations_is_refused,
);

const RELEASE: &str = "sites/01980000-0000-7000-8000-00000000000a/01980000-0000-7000-8000-00000000000b";

/// An installation with a database, a site and an id, and a backup of it.
struct Original {
    folder: TempDir,
    entries: Vec<Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    name: String,
    kind: EntryType,
    /// The size in the header; the true one if `None`.
    size: Option<u64>,
    content: Vec<u8>,
}

impl Entry {
    fn file(name: &str, content: impl AsRef<[u8]>) -> Self {
        Self {
            name: name.to_owned(),
            kind: EntryType::Regular,
            size: None,
            content: content.as_ref().to_vec(),
        }
    }
}

impl Original {
    async fn of(fresh: &Fresh) -> Self {
        Resident::of(&fresh.database, "ada").await;
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let release = data.join(RELEASE);
        fs::create_dir_all(release.join("deep/empty")).unwrap();
        fs::create_dir_all(data.join("compositions")).unwrap();
        fs::write(release.join("index.html"), "a site").unwrap();
        fs::write(release.join("deep/page.html"), "deep").unwrap();
        std::os::unix::fs::symlink("deep/page.html", release.join("link.html")).unwrap();
        fs::create_dir_all(data.join("sites/.01980000-going")).unwrap();
        fs::write(data.join("instance-id"), "01980000-0000-7000-8000-00000000000c\n").unwrap();
        fs::write(data.join("secret.key"), "not for a backup").unwrap();
        let archive = folder.path().join("backup");
        let database = fresh.url();
        let origin = Origin { launchway: "0.1.0".to_owned(), created_at: "2026-11-15T00:00:00Z".to_owned() };
        let installation = Installation { data_dir: &data, database: &database };
        backup::create(installation, &archive, origin, false, || Ok(())).unwrap();
        let entries = read(&archive);
        Self { folder, entries }
    }

    fn manifest(&self) -> Value {
        let entry = self.entries.iter().find(|entry| entry.name == "manifest.json").unwrap();
        serde_json::from_slice(&entry.content).unwrap()
    }

    /// Returns the archive with other entries, and a matching checksum.
    fn changed(&self, change: impl FnOnce(&mut Vec<Entry>)) -> Vec<Entry> {
        let mut entries = self.entries.clone();
        change(&mut entries);
        sealed(entries)
    }

    /// Returns the archive with another manifest, and a matching checksum.
    fn with_manifest(&self, change: impl FnOnce(&mut Value)) -> Vec<Entry> {
        let mut manifest = self.manifest();
        change(&mut manifest);
        self.changed(|entries| {
            let entry = entries.iter_mut().find(|entry| entry.name == "manifest.json").unwrap();
            entry.content = manifest.to_string().into_bytes();
        })
    }

    fn write(&self, entries: &[Entry]) -> PathBuf {
        let path = self.folder.path().join("changed");
        write(&path, entries);
        path
    }

    /// Asserts that an archive is rejected, and that nothing of it is left anywhere.
    #[track_caller]
    fn refuses(&self, what: &str, entries: &[Entry]) -> String {
        let path = self.write(entries);
        let target = Target::new();
        let before = everything_below(self.folder.path());
        let Err(refused) = target.restore(&path) else { panic!("{what} is not refused") };
        assert!(matches!(
            refused,
            BackupError::Refused(_) | BackupError::Tables(_) | BackupError::File { .. }
        ));
        assert_eq!(everything_below(target.folder.path()), ["data"], "{what}: {refused}");
        assert_eq!(everything_below(self.folder.path()), before, "{what}");
        refused.to_string()
    }
}

/// An empty target, on SQLite.
struct Target {
    folder: TempDir,
}

impl Target {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("data")).unwrap();
        Self { folder }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn restore(&self, archive: &Path) -> Result<Manifest, BackupError> {
        let manifest = backup::verify(archive)?;
        let database = DatabaseUrl::Sqlite(self.data().join("launchway.db"));
        let installation = Installation { data_dir: &self.data(), database: &database };
        backup::restore(archive, &manifest, installation, Some(("secret.key", "a key\n")))?;
        Ok(manifest)
    }
}

fn everything_below(folder: &Path) -> Vec<String> {
    fn walk(root: &Path, folder: &Path, found: &mut Vec<String>) {
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            found.push(path.strip_prefix(root).unwrap().display().to_string());
            if path.symlink_metadata().unwrap().is_dir() {
                walk(root, &path, found);
            }
        }
    }
    let mut found = Vec::new();
    walk(folder, folder, &mut found);
    found.sort();
    found
}

fn read(path: &Path) -> Vec<Entry> {
    let mut archive = tar::Archive::new(GzDecoder::new(File::open(path).unwrap()));
    let entries = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().display().to_string();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        Entry { name, kind: EntryType::Regular, size: None, content }
    });
    entries.collect()
}

/// Writes the entries without any check.
fn write(path: &Path, entries: &[Entry]) {
    let mut packed = GzEncoder::new(File::create(path).unwrap(), Compression::fast());
    for entry in entries {
        let mut header = tar::Header::new_gnu();
        let name = entry.name.as_bytes();
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name);
        header.set_entry_type(entry.kind);
        header.set_size(entry.size.unwrap_or(entry.content.len() as u64));
        header.set_mode(0o777);
        if entry.kind == EntryType::Symlink || entry.kind == EntryType::Link {
            header.set_link_name_literal("/etc").unwrap();
        }
        header.set_cksum();
        packed.write_all(header.as_bytes()).unwrap();
        packed.write_all(&entry.content).unwrap();
        packed.write_all(&vec![0; entry.content.len().next_multiple_of(512) - entry.content.len()]).unwrap();
    }
    packed.write_all(&[0; 1024]).unwrap();
    packed.finish().unwrap();
}

/// Makes the checksum of an archive match its manifest.
fn sealed(mut entries: Vec<Entry>) -> Vec<Entry> {
    let manifest =
        entries.iter().rfind(|entry| entry.name == "manifest.json").map(|entry| entry.content.clone());
    let hash = hex(&manifest.unwrap_or_default());
    for entry in entries.iter_mut().filter(|entry| entry.name == "manifest.sha256") {
        entry.content = format!("{hash}  manifest.json\n").into_bytes();
    }
    entries
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn what_was_backed_up_is_restored_as_it_was(fresh: &Fresh) {
    let original = Original::of(fresh).await;
    let target = Target::new();
    // Written by the test itself, so that what it refuses elsewhere is not refused for how it is written.
    target.restore(&original.write(&original.entries)).unwrap();
    let release = target.data().join(RELEASE);
    assert_eq!(fs::read_to_string(release.join("link.html")).unwrap(), "deep");
    assert!(release.join("link.html").symlink_metadata().unwrap().is_symlink());
    assert!(release.join("deep/empty").is_dir() && target.data().join("compositions").is_dir());
    assert!(!target.data().join("sites/.01980000-going").exists());
    let times = |data: &Path| data.join(RELEASE).join("index.html").metadata().unwrap().modified().unwrap();
    assert_eq!(times(&target.data()), times(&original.folder.path().join("data")));
    assert_eq!(fs::read_to_string(target.data().join("secret.key")).unwrap(), "a key\n");
    let names = everything_below(&target.data());
    assert!(
        names.contains(&"instance-id".to_owned()) && !names.iter().any(|name| name.contains("restoring"))
    );
    // Not twice.
    let said = target.restore(&original.write(&original.entries)).unwrap_err().to_string();
    assert!(said.contains("there is a database"), "{said}");
}

async fn archives_with_other_entries_are_refused(fresh: &Fresh) {
    let original = Original::of(fresh).await;
    for kind in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Directory,
        EntryType::Char,
        EntryType::Block,
        EntryType::Fifo,
        EntryType::GNUSparse,
    ] {
        let odd = Entry { kind, ..Entry::file("files/sites/odd", "") };
        original.refuses(&format!("{kind:?}"), &original.changed(|entries| entries.insert(0, odd)));
    }
    for name in [
        "../evil",
        "/tmp/evil",
        "files/../../evil",
        "files//tmp/evil",
        "files/sites/../../../evil",
        "files/secret.key",
        "files/launchway.db",
        "tables/users/000009",
        "tables/../evil/000001",
        "evil",
        "",
    ] {
        let odd = Entry::file(name, "evil\n");
        let said = original.refuses(name, &original.changed(|entries| entries.insert(0, odd)));
        assert!(said.contains("the archive is damaged"), "{name}: {said}");
    }
    let position = |name: &str| {
        let found = original.entries.iter().position(|entry| entry.name.starts_with(name));
        found.unwrap_or_else(|| panic!("{name} is missing"))
    };
    for name in ["tables/users/", "files/sites/", "manifest.json", "manifest.sha256"] {
        let at = position(name);
        original.refuses(&format!("no {name}"), &original.changed(|entries| drop(entries.remove(at))));
        let twice = original.changed(|entries| entries.insert(at, entries[at].clone()));
        original.refuses(&format!("{name} twice"), &twice);
        let other = || {
            let mut entries = original.entries.clone();
            entries[at].content.insert(0, b'x');
            entries
        };
        original.refuses(&format!("another {name}"), &other());
    }
    let behind = original.changed(|entries| entries.push(Entry::file("files/sites/late", "late")));
    original.refuses("something behind the end", &behind);
    original.refuses("nothing", &[]);
    let not_text = original.changed(|entries| entries[position("tables/users/")].content = vec![0xff, b'\n']);
    original.refuses("no text", &not_text);
}

async fn archives_with_other_manifests_are_refused(fresh: &Fresh) {
    let original = Original::of(fresh).await;
    let refuse = |what: &str, expected: &str, change: &dyn Fn(&mut Value)| {
        let said = original.refuses(what, &original.with_manifest(|manifest| change(manifest)));
        assert!(said.contains(expected), "{what}: {said}");
    };
    refuse("a newer form", "use a newer version", &|manifest| manifest["format"] = json!(2));
    refuse("newer tables", "does not know", &|manifest| manifest["schema"] = json!("20991231000001"));
    refuse("no form", "damaged", &|manifest| *manifest = json!([]));
    refuse("no tables", "damaged", &|manifest| manifest["tables"] = json!([]));
    refuse("other columns", "not those of its version", &|manifest| {
        manifest["tables"][0]["columns"] = json!(["evil"]);
    });
    refuse("other rows", "is not what it was", &|manifest| manifest["tables"][0]["rows"] = json!(7));
    refuse("a file elsewhere", "damaged", &|manifest| manifest["files"][0]["path"] = json!("sites/../evil"));
    refuse("a file of another size", "is not what it was", &|manifest| {
        manifest["files"][0]["size"] = json!(1);
    });
    for folder in ["../evil", "/tmp/evil", "sites/../../evil", "proxy"] {
        refuse(folder, "does not belong", &|manifest| manifest["folders"][0] = json!(folder));
    }
}

async fn links_that_lead_out_of_a_site_are_refused(fresh: &Fresh) {
    let original = Original::of(fresh).await;
    for (path, target) in [
        ("link.html", "/etc/passwd"),
        ("link.html", "../../../../../../../etc/passwd"),
        ("link.html", "../../.."),
        ("link.html", ".."),
        ("link.html", "nowhere"),
        ("deep/page.html/link", "index.html"),
    ] {
        let said = original.refuses(
            target,
            &original.with_manifest(|manifest| {
                manifest["links"][0] = json!({"path": format!("{RELEASE}/{path}"), "target": target});
            }),
        );
        assert!(said.contains("points outside its site") || said.contains("cannot use"), "{target}: {said}");
    }
    for path in ["instance-id", "compositions/link", "sites", "sites/link"] {
        original.refuses(
            path,
            &original.with_manifest(|manifest| {
                manifest["links"] = json!([{"path": path, "target": "index.html"}]);
            }),
        );
    }
    // A link that another one is to be made behind.
    original.refuses(
        "a link in a link",
        &original.with_manifest(|manifest| {
            manifest["links"] = json!([
                {"path": format!("{RELEASE}/a"), "target": "deep"},
                {"path": format!("{RELEASE}/a/b"), "target": "page.html"},
            ]);
        }),
    );
}

async fn absurd_sizes_are_refused(fresh: &Fresh) {
    let original = Original::of(fresh).await;
    for size in [u64::MAX / 4, 1 << 40, 65 * 1024 * 1024] {
        for name in ["tables/users/", "files/sites/", "manifest.json"] {
            let absurd = original.changed(|entries| {
                let entry = entries.iter_mut().find(|entry| entry.name.starts_with(name)).unwrap();
                entry.size = Some(size);
            });
            original.refuses(&format!("{name} of {size}"), &absurd);
        }
    }
}

async fn rows_that_the_database_refuses_leave_nothing(fresh: &Fresh) {
    let original = Original::of(fresh).await;
    let manifest = original.manifest();
    let table =
        manifest["tables"].as_array().unwrap().iter().position(|table| table["name"] == "users").unwrap();
    let rows =
        original.entries.iter().find(|entry| entry.name == "tables/users/000001").unwrap().content.clone();
    let row: Vec<Value> = serde_json::from_slice(rows.trim_ascii()).unwrap();
    let mut nobody = row.clone();
    nobody.iter_mut().for_each(|value| *value = Value::Null);
    let mut short = row.clone();
    short.pop();
    let mut loose = row;
    loose.iter_mut().for_each(|value| *value = json!({"$": ["evil"]}));
    for row in [nobody, short, loose] {
        let line = format!("{}\n", Value::from(row));
        let entries = original.with_manifest(|manifest| {
            manifest["tables"][table]["sha256"] = json!(hex(line.as_bytes()));
        });
        let entries: Vec<Entry> = entries
            .into_iter()
            .map(|entry| match entry.name.as_str() {
                "tables/users/000001" => Entry::file("tables/users/000001", &line),
                _ => entry,
            })
            .collect();
        original.refuses(&line, &entries);
    }
}

async fn an_archive_of_two_installations_is_refused(fresh: &Fresh) {
    let other = "01980000-0000-7000-8000-00000000000d";
    fresh.database.claim_for_installation(other.parse().unwrap(), crate::builders::at(0)).await.unwrap();
    let original = Original::of(fresh).await;
    let refused = original.refuses("two installations", &original.entries);
    assert!(refused.contains(other) && refused.contains("00000000000c"), "{refused}");
}
