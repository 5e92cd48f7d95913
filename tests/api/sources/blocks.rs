//! Uploads of blocks: only what the server lacks is sent.

use std::{fs, io::Write as _};

use data_encoding::HEXLOWER;
use flate2::{Compression, write::GzEncoder};
use launchway_testkit::{client::Client, people::join};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::harness::{DEPLOY, Developer, SHOP, on_both, token};

on_both!(
    blocks_are_sent_once_and_deployed,
    a_repeated_request_makes_one_deployment,
    a_killed_server_finishes_the_request_once,
    hostile_lists_are_refused_and_change_nothing,
    damaged_parts_are_refused,
    other_organizations_do_not_share_blocks,
);

pub(super) fn sha256(content: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(content))
}

/// Gzips blocks as a part.
fn part(blocks: &[&[u8]]) -> Vec<u8> {
    let mut writer = GzEncoder::new(Vec::new(), Compression::fast());
    for block in blocks {
        writer.write_all(&u32::try_from(block.len()).unwrap().to_be_bytes()).unwrap();
        writer.write_all(block).unwrap();
    }
    writer.finish().unwrap()
}

fn send(client: &Client, blocks: &[&[u8]]) -> Value {
    client.post_bytes(&format!("{DEPLOY}/source/blocks"), &part(blocks)).success()
}

fn missing(client: &Client, ids: &[&str]) -> Vec<String> {
    let asked = client.post(&format!("{DEPLOY}/source/blocks/missing"), &json!({"blocks": ids}));
    let asked = asked.success();
    asked["missing"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect()
}

/// Sends files and their list, and returns its digest.
fn sent(client: &Client, files: &[(&str, &str)]) -> String {
    let mut list = "files\n".to_owned();
    for (path, text) in files {
        let id = sha256(text.as_bytes());
        list += &format!("100644 {id} {path}\n");
    }
    let mut blocks: Vec<&[u8]> = files.iter().map(|(_, text)| text.as_bytes()).collect();
    blocks.push(list.as_bytes());
    send(client, &blocks);
    sha256(list.as_bytes())
}

fn files(client: &Client, body: &Value) -> launchway_testkit::client::Answer {
    client.post(&format!("{DEPLOY}/source/files"), body)
}

fn blocks_are_sent_once_and_deployed(ada: Developer) {
    let (page, other) = (sha256(b"a page"), sha256(b"other"));
    assert_eq!(missing(&ada.admin, &[&page, &other]), [page.clone(), other.clone()]);
    assert_eq!(send(&ada.admin, &[b"a page"]), json!({"blocks": 1, "bytes": 6}));
    assert_eq!(missing(&ada.admin, &[&page, &other]), [other]);
    // A link, an empty program, a file of two blocks, and a list of lists.
    let (target, whole) = (sha256(b"docs/a.txt"), sha256(b"one"));
    let first = format!("files\n100644 {page} index.html\n120000 {target} latest\n");
    let second = format!("files\n100755 - bin/run\n100644 {whole},{page} docs/a.txt\n");
    let root = format!("lists\n{}\n{}\n", sha256(first.as_bytes()), sha256(second.as_bytes()));
    send(&ada.admin, &[b"docs/a.txt", b"one", first.as_bytes(), second.as_bytes(), root.as_bytes()]);
    let digest = sha256(root.as_bytes());
    let deployment = files(&ada.admin, &json!({"name": "shop", "digest": digest})).success();
    let named = json!(format!("sha256:{digest}"));
    assert_eq!(deployment["source_digest"], named);
    let log = deployment["logs"][0]["log"].as_str().unwrap();
    assert_eq!(log, format!("Deployment requested by ada, by an upload with the SHA-256 {digest}"));
    let id = deployment["application_id"].as_str().unwrap().to_owned();
    assert_eq!(deployment["application"]["build_pack"], "static");
    assert_eq!(ada.finished(&id)[0]["status"]["status"], "deployed");
    let commit = deployment["commit_hash"].as_str().unwrap();
    let listed = super::harness::git(&ada.hosted(&id), &["--git-dir=.", "ls-tree", "-r", commit]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    let modes: Vec<_> = listed.lines().map(|line| (&line[..6], line.split('\t').nth(1).unwrap())).collect();
    let expected =
        [("100755", "bin/run"), ("100644", "docs/a.txt"), ("100644", "index.html"), ("120000", "latest")];
    assert_eq!(modes, expected);
    let text =
        super::harness::git(&ada.hosted(&id), &["--git-dir=.", "show", &format!("{commit}:docs/a.txt")]);
    assert_eq!(text.stdout, b"onea page");
    // The digest belongs to the version: to its redeployment and to a rollback, and not to a push.
    ada.admin.post(&format!("{DEPLOY}/redeploy"), &json!({"id": id})).success();
    assert_eq!(ada.finished(&id)[0]["source_digest"], named);
    let site = ada.site("site");
    ada.push(&site, &[&ada.remote(SHOP), "main"]);
    assert_eq!(ada.finished(&id)[0]["source_digest"], "");
    ada.admin.post(&format!("{DEPLOY}/rollback"), &json!({"id": deployment["id"]})).success();
    let all = ada.finished(&id);
    assert_eq!((all.len(), &all[0]["source_digest"]), (4, &named));
    let detail = format!("{DEPLOY}/deployments/{}", all[0]["id"].as_str().unwrap());
    assert_eq!(ada.admin.get(&detail).success()["source_digest"], named);
}

fn a_repeated_request_makes_one_deployment(ada: Developer) {
    let digest = sent(&ada.admin, &[("index.html", "a page")]);
    let once = ada.admin.with_header("idempotency-key", "first");
    let body = json!({"name": "shop", "digest": digest});
    let first = files(&once, &body).success();
    let id = first["application_id"].as_str().unwrap().to_owned();
    assert_eq!(files(&once, &body).success()["id"], first["id"]);
    let other = files(&once, &json!({"name": "other", "digest": digest})).failure(409, "conflict");
    assert!(other.contains("another body"), "{other}");
    // At the same time, to an application that exists.
    let once = ada.admin.with_header("idempotency-key", "second");
    let body = json!({"id": id, "digest": digest, "no_cache": true});
    let answers: Vec<Value> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..4).map(|_| scope.spawn(|| files(&once, &body).success())).collect();
        asked.into_iter().map(|one| one.join().unwrap()["id"].clone()).collect()
    });
    assert!(answers.iter().all(|id| *id == answers[0]), "{answers:?}");
    assert_eq!((ada.applications().len(), ada.finished(&id).len()), (1, 2));
    // An archive, whose query counts too.
    let once = ada.admin.with_header("idempotency-key", "third");
    let archive = super::uploads::archive(&[("index.html", "an archive")]);
    let path = format!("{DEPLOY}/source?id={id}");
    let first = once.post_bytes(&path, &archive).success();
    assert_eq!(first["source_digest"], format!("sha256:{}", sha256(&archive)));
    assert_eq!(once.post_bytes(&path, &archive).success()["id"], first["id"]);
    once.post_bytes(&format!("{path}&no_cache=true"), &archive).failure(409, "conflict");
    assert_eq!(ada.finished(&id).len(), 3);
}

fn a_killed_server_finishes_the_request_once(mut ada: Developer) {
    let digest = sent(&ada.admin, &[("index.html", "a page")]);
    let first = files(&ada.admin, &json!({"name": "shop", "digest": digest})).success();
    let id = first["application_id"].as_str().unwrap().to_owned();
    ada.finished(&id);
    // As a server leaves it that is killed after the reference moved, and before the deployment was committed.
    let body = json!({"id": id, "digest": digest});
    let user = ada.admin.get("/api/v1/user").success();
    let deployment = "0198c9f2-7c1e-7000-8000-000000000001";
    let pending = json!({"organization": first["application"]["organization_id"], "application": id,
        "deployment": deployment, "reference": "refs/launchway/upload/main", "old": null,
        "new": first["commit_hash"], "by": "ada", "digest": format!("sha256:{digest}"),
        "key": {"user": user["id"], "operation": format!("POST {DEPLOY}/source/files"), "name": "again",
            "body": sha256(body.to_string().as_bytes())}});
    let folder = ada.server.data_dir().join("git/pending");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(deployment), pending.to_string()).unwrap();
    ada.server.kill();
    ada.restart();
    // The client, which got no response, repeats the request.
    let again = files(&ada.admin.with_header("idempotency-key", "again"), &body).success();
    assert_eq!((&again["id"], &again["source_digest"]), (&json!(deployment), &first["source_digest"]));
    assert_eq!(ada.finished(&id).len(), 2);
}

fn hostile_lists_are_refused_and_change_nothing(ada: Developer) {
    let digest = sent(&ada.admin, &[("index.html", "a page")]);
    let first = files(&ada.admin, &json!({"name": "shop", "digest": digest})).success();
    let id = first["application_id"].as_str().unwrap().to_owned();
    let before = ada.head(&id, "refs/launchway/upload/main");
    let page = sha256(b"a page");
    let targets = ["/etc/passwd", "../../out", ".."];
    send(&ada.admin, &targets.map(str::as_bytes));
    let [absolute, far, above] = targets.map(|target| sha256(target.as_bytes()));
    let file = |path: &str| format!("100644 {page} {path}\n");
    let link = |target: &str, path: &str| format!("120000 {target} {path}\n");
    let cases = [
        (file("../out"), "outside"),
        (file("/etc/passwd"), "outside"),
        (file("a/../../out"), "outside"),
        (file("a//b"), "outside"),
        (file(".."), "outside"),
        (file("."), "without a name"),
        (file(""), "without a name"),
        (file(".git/hooks/post-receive"), "belongs to git"),
        (file("a/.GIT/config"), "belongs to git"),
        (file("git~1/config"), "belongs to git"),
        (file(".git\u{200c}/config"), "belongs to git"),
        (file("a\tb"), "control"),
        (file("a\r"), "control"),
        (file(&"x/".repeat(600)), "longer than 1024"),
        (link(&absolute, "link"), "outside"),
        (link(&far, "d/link"), "outside"),
        (link(&above, "link"), "outside"),
        (link("-", "link"), "outside"),
        (link(&format!("{}{page}", format!("{page},").repeat(200)), "link"), "longer than 1024"),
        (file("a") + &file("a"), "twice"),
        (file("a") + &file("a/b"), "both"),
        (file("a/b") + &file("a"), "twice"),
        (format!("100600 {page} a\n"), "damaged"),
        (format!("040000 {page} a\n"), "damaged"),
        ("100644 xyz a\n".to_owned(), "damaged"),
        (String::new(), "no files"),
    ];
    let refused = |list: &[u8], part: &str| {
        send(&ada.admin, &[list]);
        let body = json!({"id": id, "digest": sha256(list)});
        let message = files(&ada.admin, &body).failure(400, "validation_failed");
        assert!(message.contains(part), "{}: {message}", String::from_utf8_lossy(list));
    };
    for (lines, part) in cases {
        refused(format!("files\n{lines}").as_bytes(), part);
    }
    refused(b"files\n100644 - a\xff\n", "damaged");
    refused(format!("files\n100644 {page} a").as_bytes(), "damaged");
    refused(b"a page which is no list", "damaged");
    // One block that is a file of 600 MiB, and lists of lists without end.
    let zeros = vec![0; 1 << 20];
    send(&ada.admin, &[&zeros]);
    let zeros = format!("{},", sha256(&zeros)).repeat(600);
    refused(format!("files\n100644 {} bomb\n", zeros.trim_end_matches(',')).as_bytes(), "more than 500 MiB");
    let mut list = b"files\n100644 - a\n".to_vec();
    for _ in 0..4 {
        send(&ada.admin, &[&list]);
        list = format!("lists\n{}", format!("{}\n", sha256(&list)).repeat(1000)).into_bytes();
    }
    refused(&list, "more than 100000 entries");
    assert_eq!(ada.head(&id, "refs/launchway/upload/main"), before);
    // What is missing can be sent; what is not valid is named.
    let absent = format!("files\n100644 {} a\n", sha256(b"absent"));
    send(&ada.admin, &[absent.as_bytes()]);
    for digest in [sha256(b"absent"), sha256(absent.as_bytes())] {
        let message = files(&ada.admin, &json!({"id": id, "digest": digest})).failure(409, "conflict");
        assert!(message.contains("blocks of this upload are missing"), "{message}");
    }
    for body in [
        json!({"id": id}),
        json!({"id": id, "digest": "abc"}),
        json!({"digest": digest}),
        json!({"id": id, "name": "shop", "digest": digest}),
    ] {
        files(&ada.admin, &body).failure(400, "validation_failed");
    }
    let unknown = json!({"id": "0198c9f2-7c1e-7000-8000-000000000001", "digest": digest});
    files(&ada.admin, &unknown).failure(404, "not_found");
    assert_eq!((ada.applications().len(), ada.deployments(&id).len()), (1, 1));
}

fn damaged_parts_are_refused(ada: Developer) {
    let path = format!("{DEPLOY}/source/blocks");
    let whole = part(&[b"a page"]);
    let refused = |body: &[u8], part: &str| {
        let message = ada.admin.post_bytes(&path, body).failure(400, "validation_failed");
        assert!(message.contains(part), "{message}");
    };
    refused(b"", "gzipped");
    refused(b"not gzipped", "gzipped");
    refused(&whole[..whole.len() - 9], "cut short");
    refused(&part(&[]), "no blocks");
    refused(&part(&[b""]), "1 to 1048576 bytes, got 0");
    let mut cut = GzEncoder::new(Vec::new(), Compression::fast());
    cut.write_all(&[0, 0, 0, 9, b'x']).unwrap();
    refused(&cut.finish().unwrap(), "cut short");
    // Each limit on both sides; what is compressed well is no way around.
    let block = vec![b'x'; 1 << 20];
    send(&ada.admin, &[&block]);
    refused(&part(&[&[block.as_slice(), b"x"].concat()]), "got 1048577");
    assert_eq!(send(&ada.admin, &[block.as_slice(); 16])["bytes"], 16 << 20);
    let more: Vec<&[u8]> = [block.as_slice(); 16].into_iter().chain([&b"x"[..]]).collect();
    refused(&part(&more), "more than 16 MiB");
    assert_eq!(send(&ada.admin, &[&b"x"[..]; 20_000])["blocks"], 20_000);
    refused(&part(&[&b"x"[..]; 20_001]), "more than 20000 blocks");
    let ask = |count: usize| {
        let body = json!({"blocks": vec![sha256(b"x"); count]});
        ada.admin.post(&format!("{path}/missing"), &body)
    };
    assert_eq!(ask(4096).success()["missing"], json!([]));
    assert!(ask(4097).failure(400, "validation_failed").contains("1 to 4096 digests, got 4097"));
    ask(0).failure(400, "validation_failed");
    let reader = ada.server.client().with_token(&token(&ada.admin, &["deploy:read"]));
    reader.post_bytes(&path, &whole).failure(403, "forbidden");
    reader.post(&format!("{path}/missing"), &json!({"blocks": [sha256(b"x")]})).failure(403, "forbidden");
    files(&reader, &json!({"name": "shop", "digest": sha256(b"x")})).failure(403, "forbidden");
}

fn other_organizations_do_not_share_blocks(ada: Developer) {
    let digest = sent(&ada.admin, &[("index.html", "a page")]);
    let page = sha256(b"a page");
    assert_eq!(missing(&ada.admin, &[&page, &digest]), Vec::<String>::new());
    let other = json!({"name": "Other", "description": ""});
    let other = ada.admin.post("/api/v1/organizations", &other).success();
    let there = ada.admin.with_header("x-organization-id", other["id"].as_str().unwrap());
    let eve = join(&ada.server, &there, "eve@example.com", "admin");
    let eve = ada.server.log_in(&eve.email, eve.password);
    for stranger in [there, eve] {
        assert_eq!(missing(&stranger, &[&page, &digest]), [page.clone(), digest.clone()]);
        let message = files(&stranger, &json!({"name": "shop", "digest": digest})).failure(409, "conflict");
        assert!(message.contains("missing"), "{message}");
    }
}

#[test]
fn compressed_files_over_the_limit_are_refused() {
    let ada = Developer::on_sqlite(&[("LAUNCHWAY_MAX_SOURCE_SIZE", "100k")]);
    let mut state = 7_u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b' ' + ((state >> 33) % 64) as u8)
    };
    // 64 characters are six bits each.
    let first: String = std::iter::repeat_with(&mut noise).take(100_000).collect();
    let second: String = std::iter::repeat_with(&mut noise).take(50_000).collect();
    let fits = sent(&ada.admin, &[("index.html", &first)]);
    files(&ada.admin, &json!({"name": "shop", "digest": fits})).success();
    send(&ada.admin, &[second.as_bytes()]);
    let list = format!(
        "files\n100644 {} index.html\n100644 {} more\n",
        sha256(first.as_bytes()),
        sha256(second.as_bytes())
    );
    send(&ada.admin, &[list.as_bytes()]);
    let large = json!({"name": "shop", "digest": sha256(list.as_bytes())});
    let message = files(&ada.admin, &large).failure(400, "validation_failed");
    assert!(message.contains("larger than 102400 bytes"), "{message}");
}

#[test]
fn servers_on_postgres_without_a_shared_folder_refuse_blocks() {
    let ada = Developer::on_postgres(&[]);
    let digest = sent(&ada.admin, &[("index.html", "a page")]);
    let second = ada.server.replica(&[]);
    let there = ada.admin.at(second.url());
    let path = format!("{DEPLOY}/source/blocks/missing");
    let message = crate::wait::until("a refusal", || {
        let asked = there.post(&path, &json!({"blocks": [digest]}));
        (asked.status == 409).then(|| asked.failure(409, "conflict"))
    });
    assert!(message.contains("LAUNCHWAY_REPOSITORIES_DIR"), "{message}");
    there.post_bytes(&format!("{DEPLOY}/source/blocks"), &part(&[b"x"])).failure(409, "conflict");
    files(&there, &json!({"name": "shop", "digest": digest})).failure(409, "conflict");
}
