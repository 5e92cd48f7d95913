//! A full disk: changes fail with the reason, reads work, and `/ready` reports it.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use launchway_testkit::{
    client::{Answer, Client},
    server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer, binary},
};
use serde_json::json;
use tempfile::TempDir;

use crate::wait::until;

/// Mounts in a namespace of its own, which ends with the server.
const MOUNT: &str =
    "mount -t tmpfs -o size=24m,mode=700 launchway-test \"$LAUNCHWAY_DATA_DIR\" && exec \"$@\"";

/// A server whose data directory is a small disk of its own.
struct SmallDisk {
    process: Child,
    client: Client,
    data: TempDir,
}

impl SmallDisk {
    fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", MOUNT, "sh"]).arg(binary()).env_clear();
        command.env("PATH", std::env::var("PATH").unwrap()).env("LAUNCHWAY_DATA_DIR", data.path());
        command.env("LAUNCHWAY_BIND", "127.0.0.1:0").env("LAUNCHWAY_PROXY_BIND", "off");
        command.env("LAUNCHWAY_LOG", "off");
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let url = first.split_whitespace().last().unwrap();
        let client = Client::new(url);
        Self { process, client, data }
    }

    /// A file on the disk, as seen from outside of the server's mounts.
    fn file(&self, name: &str) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.process.id()));
        root.join(self.data.path().strip_prefix("/").unwrap()).join(name)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Fills the remaining space.
fn fill(path: &Path) {
    let mut file = File::options().create(true).append(true).open(path).unwrap();
    for size in [64 * 1024, 4096, 512] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}

#[track_caller]
fn says_that_the_disk_is_full(answer: &Answer) {
    let message = answer.failure(503, "unavailable");
    assert!(message.contains("the disk of the database is full"), "{message}");
    assert!(answer.headers["retry-after"].parse::<u64>().unwrap() >= 1);
}

#[test]
fn a_full_disk_is_named_and_readiness_follows_on_sqlite() {
    let server = SmallDisk::start();
    let registration = json!({"email": ADMIN_EMAIL, "username": "ada", "password": ADMIN_PASSWORD});
    let token = server.client.post("/api/v1/auth/register", &registration).success();
    let admin = server.client.with_token(token["access_token"].as_str().unwrap());
    server.client.get("/ready").success();

    let ballast = server.file("ballast");
    let mut number = 0;
    let refused = until("a change that is refused", || {
        fill(&ballast);
        number += 1;
        let answer = admin.patch("/api/v1/user/name", &json!({"name": format!("ada {number}")}));
        (answer.status != 200).then_some(answer)
    });
    says_that_the_disk_is_full(&refused);
    for _ in 0..3 {
        fill(&ballast);
        says_that_the_disk_is_full(&server.client.get("/ready"));
    }
    server.client.get("/health").success();
    admin.get("/api/v1/user").success();

    fs::remove_file(&ballast).unwrap();
    // Recovers without any further change.
    server.client.get("/ready").success();
    admin.patch("/api/v1/user/name", &json!({"name": "ada again"})).success();
    assert_eq!(admin.get("/api/v1/user").success()["username"], "ada again");
}

/// Makes every change of two tables fail as PostgreSQL fails on a full disk.
const FULL: &str = "
    CREATE FUNCTION fail_on_full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'could not extend file \"base/16384/16389\": No space left on device'
            USING ERRCODE = '53100', HINT = 'Check free disk space.';
    END $$;
    CREATE TRIGGER users_full BEFORE UPDATE ON users EXECUTE FUNCTION fail_on_full_disk();
    CREATE TRIGGER installation_full BEFORE UPDATE ON installation_identity EXECUTE FUNCTION fail_on_full_disk();";

#[test]
fn a_full_disk_is_named_and_readiness_follows_on_postgres() {
    let server = TestServer::on_postgres();
    let admin = server.admin();
    server.execute(FULL);
    // It is not detected before a change fails.
    server.client().get("/ready").success();
    says_that_the_disk_is_full(&admin.patch("/api/v1/user/name", &json!({"name": "ada again"})));
    for _ in 0..3 {
        says_that_the_disk_is_full(&server.client().get("/ready"));
    }
    admin.get("/api/v1/user").success();
    server.execute("DROP FUNCTION fail_on_full_disk CASCADE");
    server.client().get("/ready").success();
    admin.patch("/api/v1/user/name", &json!({"name": "ada again"})).success();
}
