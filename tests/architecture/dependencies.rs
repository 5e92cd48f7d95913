//! The allowed dependencies of each crate: the table of `docs/architecture.md`, as data.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::{problems::expect_none, workspace};

/// The allowed `[dependencies]` of one crate.
struct Rule {
    folder: &'static str,
    allowed: Allowed,
    never: &'static [&'static str],
}

enum Allowed {
    /// These packages and no others.
    Only(&'static [&'static str]),
    /// Of our own packages only these; third-party packages as needed.
    OfOurs(&'static [&'static str]),
    Anything,
}

/// Packages that exist for tests and must never reach the binary.
const FOR_TESTS: &[&str] = &["launchway-chaos", "launchway-testkit", "launchway-tests", "launchway-verifier"];

const RULES: &[Rule] = &[
    Rule {
        folder: "domain",
        allowed: Allowed::Only(&[
            "aho-corasick",
            "async-trait",
            "chrono",
            "data-encoding",
            "hmac",
            "idna",
            "ipnet",
            "mockall",
            "regex",
            "saphyr-parser",
            "sha1",
            "sha2",
            "subtle",
            "thiserror",
            "url",
            "uuid",
        ]),
        never: FOR_TESTS,
    },
    Rule {
        folder: "embedding",
        allowed: Allowed::Only(&[
            "async-trait",
            "chrono",
            "diesel",
            "getrandom",
            "launchway-application",
            "launchway-docker",
            "launchway-domain",
            "libsqlite3-sys",
            "serde",
            "serde_json",
            "thiserror",
            "tokio",
            "tracing",
            "uuid",
        ]),
        never: FOR_TESTS,
    },
    Rule {
        folder: "application",
        allowed: Allowed::Only(&[
            "async-trait",
            "chrono",
            "launchway-domain",
            "serde",
            "serde_json",
            "thiserror",
            "tokio",
            "tracing",
            "uuid",
        ]),
        never: FOR_TESTS,
    },
    Rule {
        folder: "system",
        allowed: Allowed::OfOurs(&["launchway-domain"]),
        never: &["actix-web", "diesel", "hyper", "launchway-testkit", "launchway-tests"],
    },
    Rule {
        folder: "database",
        allowed: Allowed::OfOurs(&["launchway-domain", "launchway-system"]),
        never: &["actix-web", "hyper", "launchway-testkit", "launchway-tests"],
    },
    Rule {
        folder: "docker",
        allowed: Allowed::OfOurs(&["launchway-domain", "launchway-system"]),
        never: &["actix-web", "diesel", "launchway-testkit", "launchway-tests"],
    },
    Rule {
        folder: "infrastructure",
        allowed: Allowed::OfOurs(&[
            "launchway-database",
            "launchway-docker",
            "launchway-domain",
            "launchway-proxy",
            "launchway-system",
        ]),
        never: &["actix-web", "diesel", "launchway-testkit", "launchway-tests"],
    },
    Rule {
        folder: "api",
        allowed: Allowed::OfOurs(&["launchway-application", "launchway-domain"]),
        never: &["diesel", "launchway-testkit", "launchway-tests"],
    },
    Rule {
        folder: "dashboard",
        allowed: Allowed::OfOurs(&["launchway-application", "launchway-domain"]),
        never: &["diesel", "launchway-testkit", "launchway-tests"],
    },
    Rule {
        folder: "client",
        allowed: Allowed::OfOurs(&["launchway-domain"]),
        never: &["actix-web", "diesel", "launchway-testkit", "launchway-tests"],
    },
    Rule {
        folder: "proxy",
        allowed: Allowed::OfOurs(&[]),
        never: &["actix-web", "diesel", "launchway-testkit", "launchway-tests"],
    },
    Rule { folder: "server", allowed: Allowed::Anything, never: FOR_TESTS },
    Rule { folder: "testkit", allowed: Allowed::Anything, never: &[] },
    Rule {
        folder: "chaos",
        allowed: Allowed::OfOurs(&["launchway-testkit", "launchway-verifier"]),
        never: &["launchway"],
    },
    // It verifies the others, and must not share their mistakes.
    Rule { folder: "verifier", allowed: Allowed::OfOurs(&[]), never: FOR_TESTS },
    Rule { folder: "xtask", allowed: Allowed::Only(&["anyhow", "clap", "fs-err"]), never: &[] },
];

/// Packages that other services must not inherit when they embed the domain and the application.
const HEAVY: &[&str] =
    &["actix-web", "aws-lc-sys", "diesel", "hyper", "native-tls", "openssl", "openssl-sys", "ring", "rustls"];

#[test]
fn every_crate_has_a_row_in_the_table() {
    let rows: BTreeSet<_> = RULES.iter().map(|rule| rule.folder).collect();
    let folders = workspace::folders("crates");
    let problems: Vec<_> = folders
        .iter()
        .filter(|folder| !rows.contains(folder.as_str()))
        .map(|folder| format!("crates/{folder} has no row"))
        .collect();
    expect_none(&problems, "add a row to RULES in tests/architecture/dependencies.rs");
}

#[test]
fn crates_depend_only_on_what_the_table_allows() {
    let ours: BTreeSet<_> = RULES
        .iter()
        .map(|rule| package_name(&manifest(rule.folder)))
        .chain(["launchway-tests".to_owned()])
        .collect();
    let mut problems = Vec::new();
    for rule in RULES {
        for name in dependencies(&manifest(rule.folder)).into_keys() {
            let allowed = match rule.allowed {
                Allowed::Only(names) => names.contains(&name.as_str()),
                Allowed::OfOurs(names) => !ours.contains(&name) || names.contains(&name.as_str()),
                Allowed::Anything => true,
            };
            if !allowed || rule.never.contains(&name.as_str()) {
                problems.push(format!("crates/{} depends on {name}", rule.folder));
            }
        }
    }
    expect_none(
        &problems,
        "move the code to the layer that may use it, put a port in the domain, or, for tests only, \
         use [dev-dependencies]; docs/architecture.md has the table",
    );
}

#[test]
fn the_domain_takes_mockall_only_as_an_option() {
    let manifest = manifest("domain");
    let optional = dependencies(&manifest)
        .get("mockall")
        .is_none_or(|entry| entry.get("optional").and_then(toml::Value::as_bool).unwrap_or_default());
    assert!(optional, "\ncure: write `mockall = {{ workspace = true, optional = true }}` in crates/domain\n");
}

#[test]
fn the_core_depends_on_no_server_no_database_and_no_tls() {
    let lock = Lock::read();
    let mut problems = Vec::new();
    for folder in ["domain", "application"] {
        let manifest = manifest(folder);
        let direct = dependencies(&manifest).into_keys().collect();
        problems.extend(lock.paths_to_heavy(&package_name(&manifest), &direct));
    }
    expect_none(
        &problems,
        "drop the dependency that brings it in, or turn off its default features; \
         `cargo tree -e normal -i <package>` shows the way",
    );
}

/// The most dependencies that a service inherits when it embeds deployments.
const MOST_EMBEDDED: usize = 30;

#[test]
fn embedding_brings_few_dependencies() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = "tree --offline --package launchway-embedding --edges normal --prefix none --format {p}";
    let mut tree = std::process::Command::new(cargo);
    let output = tree.args(arguments.split(' ')).current_dir(workspace::root()).output();
    let output = output.unwrap_or_else(|error| panic!("cargo cannot be run: {error}"));
    assert!(output.status.success(), "cargo tree failed: {}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8_lossy(&output.stdout);
    let names = tree.lines().filter_map(|line| line.split_whitespace().next());
    let names: BTreeSet<_> = names.filter(|name| !name.starts_with("launchway-")).collect();
    assert!(
        (1..=MOST_EMBEDDED).contains(&names.len()),
        "\nlaunchway-embedding has {} dependencies, more than {MOST_EMBEDDED}: {names:?}\ncure: put the new one \
         behind a feature of the crate that needs it (decision 44)\n",
        names.len()
    );
}

fn manifest(folder: &str) -> toml::Table {
    workspace::read_toml(format!("crates/{folder}/Cargo.toml"))
}

fn package_name(manifest: &toml::Table) -> String {
    manifest["package"]["name"].as_str().unwrap_or_default().to_owned()
}

/// Returns the packages under `[dependencies]`, for every platform, by their real names.
fn dependencies(manifest: &toml::Table) -> BTreeMap<String, toml::Value> {
    let platforms = manifest.get("target").and_then(toml::Value::as_table);
    let platforms = platforms.into_iter().flat_map(toml::Table::values).filter_map(toml::Value::as_table);
    std::iter::once(manifest)
        .chain(platforms)
        .filter_map(|table| table.get("dependencies")?.as_table())
        .flatten()
        .map(|(key, entry)| {
            let renamed = entry.get("package").and_then(toml::Value::as_str);
            (renamed.unwrap_or(key).to_owned(), entry.clone())
        })
        .collect()
}

/// `Cargo.lock`: every package with its dependencies.
struct Lock(Vec<Locked>);

struct Locked {
    name: String,
    version: String,
    dependencies: Vec<String>,
}

impl Lock {
    fn read() -> Self {
        let lock = workspace::read_toml("Cargo.lock");
        let text = |value: Option<&toml::Value>| value.and_then(toml::Value::as_str).map(str::to_owned);
        let packages = lock["package"].as_array().into_iter().flatten();
        let locked = packages.map(|package| Locked {
            name: text(package.get("name")).unwrap_or_default(),
            version: text(package.get("version")).unwrap_or_default(),
            dependencies: package
                .get("dependencies")
                .and_then(toml::Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(|name| text(Some(name)))
                .collect(),
        });
        Self(locked.collect())
    }

    /// Returns the package of an entry: `name`, or `name version` where there are several.
    fn find(&self, entry: &str) -> Option<&Locked> {
        let mut words = entry.split_whitespace();
        let (name, version) = (words.next()?, words.next());
        self.0
            .iter()
            .find(|package| package.name == name && version.is_none_or(|version| package.version == version))
    }

    /// Returns the shortest path from a workspace member to each heavy package it reaches.
    ///
    /// The lock mixes a member's dev-dependencies with the others, so the first step goes only to
    /// `direct`, and our own packages further on are not followed: they are asked for themselves.
    fn paths_to_heavy(&self, member: &str, direct: &BTreeSet<String>) -> Vec<String> {
        let Some(start) = self.find(member) else { return vec![format!("{member} is not in Cargo.lock")] };
        let first = start.dependencies.iter().filter_map(|entry| self.find(entry));
        let mut queue: VecDeque<_> = first
            .filter(|package| direct.contains(&package.name))
            .map(|package| (package, format!("{member} → {}", package.name)))
            .collect();
        let mut seen = BTreeSet::new();
        let mut paths = Vec::new();
        while let Some((package, path)) = queue.pop_front() {
            if package.name.starts_with("launchway-") || !seen.insert((&package.name, &package.version)) {
                continue;
            }
            if HEAVY.contains(&package.name.as_str()) {
                paths.push(path);
                continue;
            }
            for next in package.dependencies.iter().filter_map(|entry| self.find(entry)) {
                queue.push_back((next, format!("{path} → {}", next.name)));
            }
        }
        paths
    }
}
