//! A registry of images: the program `docker-registry`.

use std::{
    fs,
    fs::File,
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{client::Client, external::Identity, wait::until};

const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const CONFIG: &str = "application/vnd.docker.container.image.v1+json";

/// The options of a registry.
#[derive(Debug, Clone, Default)]
pub struct RegistryOptions {
    /// True if it deletes images.
    pub deletes: bool,
    /// The lines `name:hash` of its users, with hashes of bcrypt; without them it requires no login.
    pub users: Option<&'static str>,
    /// Its certificate; without one it has no TLS.
    pub tls: Option<Identity>,
}

/// A registry that ends with the value.
#[derive(Debug)]
pub struct TestRegistry {
    address: String,
    process: Child,
    /// Removed with the registry.
    folder: Option<TempDir>,
}

impl TestRegistry {
    /// Starts an empty registry on this machine.
    ///
    /// # Panics
    ///
    /// If it is not installed.
    #[must_use]
    pub fn start(options: &RegistryOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let free = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
        let mut registry = Self::start_at(&free.to_string(), folder.path(), options);
        registry.folder = Some(folder);
        registry
    }

    /// Starts a registry at an address, with the images that it had in a folder before.
    ///
    /// # Panics
    ///
    /// If it is not installed.
    #[must_use]
    pub fn start_at(address: &str, folder: &Path, options: &RegistryOptions) -> Self {
        let path = |name: &str| folder.join(name).display().to_string();
        let mut settings = json!({
            "version": 0.1,
            "log": {"level": "error"},
            "storage": {
                "filesystem": {"rootdirectory": path("registry")},
                "delete": {"enabled": options.deletes},
            },
            "http": {"addr": address},
        });
        if let Some(users) = options.users {
            fs::write(folder.join("users"), users).unwrap();
            settings["auth"] = json!({"htpasswd": {"realm": "Registry", "path": path("users")}});
        }
        if let Some(tls) = &options.tls {
            fs::write(folder.join("certificate.pem"), &tls.certificate).unwrap();
            fs::write(folder.join("key.pem"), &tls.key).unwrap();
            settings["http"]["tls"] = json!({"certificate": path("certificate.pem"), "key": path("key.pem")});
        }
        // Every JSON text is YAML.
        let file = folder.join("registry.yml");
        fs::write(&file, settings.to_string()).unwrap();
        let log = File::create(folder.join("registry.log")).unwrap();
        let mut command = Command::new("docker-registry");
        command.arg("serve").arg(&file).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let process = command.spawn().expect("this test needs the package docker-registry");
        let registry = Self { address: address.to_owned(), process, folder: None };
        until("a registry that answers", || TcpStream::connect(address).ok().map(drop));
        registry
    }

    /// Returns the host and the port.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns a client of a registry without TLS.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::new(&format!("http://{}", self.address))
    }

    /// Returns the tags of a repository, sorted; none if there is no such repository.
    #[must_use]
    pub fn tags(&self, repository: &str) -> Vec<String> {
        tags(&self.client(), repository)
    }
}

/// Returns the tags of a repository, sorted; none if there is no such repository.
///
/// # Panics
///
/// If the registry does not answer.
#[must_use]
pub fn tags(client: &Client, repository: &str) -> Vec<String> {
    let listed = client.get(&format!("/v2/{repository}/tags/list")).json();
    let listed = listed["tags"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut tags: Vec<String> = listed.map(str::to_owned).collect();
    tags.sort();
    tags
}

/// Pushes an image without layers whose configuration is `config`, which decides its digest. `digest_of` returns the digest of
/// a text.
///
/// # Panics
///
/// If the registry does not take it.
pub fn push(client: &Client, image: (&str, &str), config: &str, digest_of: impl Fn(&str) -> String) {
    let (repository, tag) = image;
    let digest = digest_of(config);
    let begun = client.send("POST", &format!("/v2/{repository}/blobs/uploads/"), Some(""));
    assert_eq!(begun.status, 202, "{begun:?}");
    let place = begun.headers["location"].clone();
    let place = place.find("/v2/").map_or("", |path| &place[path..]);
    let end = client.send("PUT", &format!("{place}&digest={digest}"), Some(config));
    assert_eq!(end.status, 201, "{end:?}");
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": CONFIG, "size": config.len(), "digest": digest},
        "layers": [],
    });
    let client = client.with_header("content-type", MANIFEST);
    let pushed = client.put(&format!("/v2/{repository}/manifests/{tag}"), &manifest);
    assert_eq!(pushed.status, 201, "{pushed:?}");
}

impl Drop for TestRegistry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        drop(self.folder.take());
    }
}
