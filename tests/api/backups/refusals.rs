//! Backups and restores that are rejected, without leaving anything behind.

use std::{fs, io::Read as _, path::Path};

use flate2::read::GzDecoder;
use launchway_testkit::{postgres::FreshDatabase, server::TestServer};

use super::{Kept, fail, succeed};
use crate::key_rotation::is_killed_at;

super::super::on_both_databases!(
    a_backup_is_restored_into_an_empty_place_only,
    rejects_a_wrong_key_before_anything_is_written,
);

/// The content of a folder, except what reading it leaves.
fn contents(folder: &Path) -> Vec<String> {
    let names = folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap());
    names.filter(|name| name != "launchway.lock").collect()
}

fn a_backup_is_restored_into_an_empty_place_only(mut server: TestServer) {
    let admin = server.admin();
    let kept = Kept::of(&server);
    let restore: &[&str] = &["backup", "restore", &kept.file(), "--key", &kept.key()];
    assert!(fail(&server, restore).contains("another Launchway is running"));
    server.terminate();
    let said = fail(&server, restore);
    assert!(said.contains("is not empty") || said.contains("there is a database"), "{said}");
    server.restart();
    admin.at(server.url()).get("/api/v1/user").success();

    // The folder is empty, and the database is not.
    if !server.is_on_sqlite() {
        server.kill();
        server.lose_data();
        let said = fail(&server, restore);
        assert!(said.contains("the database is not empty"), "{said}");
        assert_eq!(contents(server.data_dir()), Vec::<String>::new());
    }
}

fn rejects_a_wrong_key_before_anything_is_written(mut server: TestServer) {
    let admin = server.admin();
    let kept = Kept::of(&server);
    server.kill();
    server.lose_data();
    let database = (!server.is_on_sqlite()).then(FreshDatabase::create);
    server.use_database(database);

    let said = fail(&server, &["backup", "restore", &kept.file()]);
    assert!(said.contains("specify its file with --key"), "{said}");
    let wrong = kept.folder().join("wrong");
    fs::write(&wrong, "0123456789abcdef".repeat(4)).unwrap();
    let said = fail(&server, &["backup", "restore", &kept.file(), "--key", wrong.to_str().unwrap()]);
    assert!(said.contains("is not the one that encrypted the secrets in this backup"), "{said}");
    fs::write(&wrong, "no key").unwrap();
    let said = fail(&server, &["backup", "restore", &kept.file(), "--key", wrong.to_str().unwrap()]);
    assert!(said.contains("64 hexadecimal digits"), "{said}");
    assert_eq!(contents(server.data_dir()), Vec::<String>::new());

    succeed(&server, &["backup", "restore", &kept.file(), "--key", &kept.key()]);
    server.restart();
    admin.at(server.url()).get("/api/v1/user").success();
}

#[test]
fn nothing_is_overwritten_unless_it_is_said() {
    let server = TestServer::on_sqlite();
    server.admin();
    let kept = Kept::of(&server);
    let before = fs::read(kept.file()).unwrap();
    let said = fail(&server, &["backup", "create", &kept.file()]);
    assert!(said.contains("already exists") && said.contains("--force"), "{said}");
    let other = kept.folder().join("other");
    let other = other.to_str().unwrap();
    let said = fail(&server, &["backup", "create", other, "--key", &kept.key()]);
    assert!(said.contains("already exists") && !Path::new(other).exists(), "{said}");
    assert_eq!(fs::read(kept.file()).unwrap(), before);
    succeed(&server, &["backup", "create", &kept.file(), "--key", &kept.key(), "--force"]);
    let said = succeed(&server, &["backup", "create", other]);
    assert!(said.contains("does not contain the key"), "{said}");
    assert!(
        fail(&server, &["backup", "create", other, "--key", other, "--force"]).contains("a separate file")
    );
}

#[test]
fn the_key_is_never_in_a_backup() {
    let server = TestServer::on_sqlite();
    server.admin();
    let kept = Kept::of(&server);
    let key = fs::read_to_string(kept.key()).unwrap();
    assert_eq!(key, fs::read_to_string(server.data_dir().join("secret.key")).unwrap());
    let unpacked = std::process::Command::new("gzip").args(["-dc", &kept.file()]).output().unwrap();
    assert!(unpacked.status.success());
    let text = String::from_utf8_lossy(&unpacked.stdout);
    assert!(text.contains("ada@example.com") && text.contains("tables/users/000001"));
    assert!(!text.contains(key.trim()));
    let bytes = data_encoding::HEXLOWER.decode(key.trim().as_bytes()).unwrap();
    assert!(!unpacked.stdout.windows(bytes.len()).any(|window| window == bytes));
}

#[test]
fn rejects_invalid_and_changed_backups_without_leftovers() {
    let mut server = TestServer::on_sqlite();
    server.admin();
    let kept = Kept::of(&server);
    let whole = fs::read(kept.file()).unwrap();
    server.kill();
    server.lose_data();
    let changed = kept.folder().join("changed");
    let refuse = |bytes: &[u8], what: &str| {
        fs::write(&changed, bytes).unwrap();
        let changed = changed.to_str().unwrap();
        for arguments in
            [&["backup", "verify", changed][..], &["backup", "restore", changed, "--key", &kept.key()]]
        {
            let said = fail(&server, arguments);
            assert!(said.contains("the archive is damaged"), "{what}: {said}");
        }
        assert!(contents(server.data_dir()).is_empty(), "{what}");
    };
    for length in [0, 1, 20, whole.len() / 2, whole.len() - 1] {
        refuse(&whole[..length], &format!("the first {length} bytes"));
    }
    let mut refused = 0;
    for part in 1..8 {
        let mut bytes = whole.clone();
        let at = whole.len() * part / 8;
        bytes[at] ^= 0x10;
        // Within equal bytes, a repetition of others may be the same.
        if unpacked(&bytes) != unpacked(&whole) {
            refuse(&bytes, &format!("another byte {at}"));
            refused += 1;
        }
    }
    assert!(refused > 3, "{refused}");
    refuse(b"launchway", "a text");
    let said = fail(&server, &["backup", "verify", "/nowhere/at/all"]);
    assert!(said.contains("cannot use `/nowhere/at/all`"), "{said}");
}

/// Returns the content of compressed bytes; `None` if they are damaged.
fn unpacked(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut content).ok()?;
    Some(content)
}

#[test]
fn a_full_disk_leaves_no_half_a_backup() {
    let mut server = TestServer::on_sqlite();
    server.admin();
    // More than fits, and nothing that shrinks.
    let noise: String = std::iter::repeat_with(|| format!("{:032x}", rand())).take(8000).collect();
    fs::create_dir_all(server.data_dir().join("sites/a/b")).unwrap();
    fs::write(server.data_dir().join("sites/a/b/noise"), noise).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=64k none \"$1\" && \"$2\" backup create \"$1/backup\"; code=$?; \
                  ls -A \"$1\"; exit $code";
    let binary = launchway_testkit::server::binary();
    let inner = server.command(&[]);
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-c", script, "sh"]);
    command.arg(folder.path()).arg(&binary);
    for (name, value) in inner.get_envs() {
        command.env(name, value.unwrap());
    }
    let output = command.env("PATH", std::env::var("PATH").unwrap()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("No space left on device"), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "nothing is left");
    server.terminate();
}

fn rand() -> u128 {
    use std::hash::{BuildHasher as _, Hasher as _, RandomState};
    let word = || RandomState::new().build_hasher().finish();
    (u128::from(word()) << 64) | u128::from(word())
}

#[test]
fn a_server_does_not_start_on_half_a_backup() {
    let mut server = TestServer::on_sqlite();
    let kept = Kept::of(&server);
    server.terminate();
    fs::create_dir(server.data_dir().join(".restoring")).unwrap();
    for arguments in
        [&["serve"][..], &["migrate"], &["backup", "restore", &kept.file(), "--key", &kept.key()]]
    {
        let said = fail(&server, arguments);
        assert!(said.contains("was not restored to its end"), "{said}");
    }
}

#[test]
fn a_server_does_not_start_on_an_interrupted_restore() {
    let mut server = TestServer::on_sqlite();
    let admin = server.admin();
    let kept = Kept::of(&server);
    server.kill();
    let restore: &[&str] = &["backup", "restore", &kept.file(), "--key", &kept.key()];
    let mut kills = 0;
    for (call, when) in
        [("rename", 1), ("rename", 2), ("rename", 3), ("syncfs", 1), ("fdatasync", 1), ("rmdir", 1)]
    {
        server.lose_data();
        if !is_killed_at(&server, restore, call, when) {
            continue;
        }
        kills += 1;
        for arguments in [&["serve"][..], restore] {
            let said = fail(&server, arguments);
            assert!(said.contains("was not restored to its end"), "{call} {when}: {said}");
        }
    }
    assert!(kills >= 4, "{kills}");
    server.lose_data();
    succeed(&server, restore);
    server.restart();
    admin.at(server.url()).get("/api/v1/user").success();
}

#[test]
fn a_key_that_is_elsewhere_stays_there() {
    let mut server = TestServer::on_sqlite();
    let admin = server.admin();
    let kept = Kept::of(&server);
    server.kill();
    server.lose_data();
    server.set("LAUNCHWAY_SECRET_KEY_FILE", &kept.key());
    let said = fail(&server, &["backup", "restore", &kept.file(), "--key", &kept.key()]);
    assert!(said.contains("omit --key"), "{said}");
    succeed(&server, &["backup", "restore", &kept.file()]);
    assert!(!server.data_dir().join("secret.key").exists());
    server.restart();
    admin.at(server.url()).get("/api/v1/user").success();
}
