//! Searches for canaries in every output of an installation.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use launchway_testkit::{client::Client, docker::docker};
use serde_json::Value;

use super::{
    net::Net,
    setup::{BUILD_VARIABLE, Installation, PLANTED},
};
use crate::document::{Operation, operations};

/// Fields that contain secrets for those who may see them.
const VARIABLES: [&str; 2] = ["build_variables", "environment_variables"];
/// The same fields for an administrator.
const OF_AN_ADMINISTRATOR: [&str; 4] = ["build_variables", "environment_variables", "webhook_url", "secret"];

/// The results of a search.
pub(crate) struct Search<'a> {
    net: &'a Net,
    places: BTreeMap<&'static str, Place>,
}

#[derive(Default)]
pub(crate) struct Place {
    /// The number of files, responses, notifications and so on.
    pub(crate) things: usize,
    pub(crate) bytes: usize,
    /// The canaries that were found, with the item in which they were.
    pub(crate) found: BTreeSet<(String, &'static str)>,
    /// The number of items that contain the planted canary.
    pub(crate) planted: usize,
}

impl<'a> Search<'a> {
    pub(crate) fn with(net: &'a Net) -> Self {
        Self { net, places: BTreeMap::new() }
    }

    pub(crate) fn places(&self) -> &BTreeMap<&'static str, Place> {
        &self.places
    }

    /// Searches one item of a place.
    pub(crate) fn look(&mut self, place: &'static str, thing: &str, bytes: &[u8]) {
        self.look_past(place, thing, bytes, "");
    }

    /// The same, where one canary is expected.
    fn look_past(&mut self, place: &'static str, thing: &str, bytes: &[u8], known: &str) {
        let place = self.places.entry(place).or_default();
        place.things += 1;
        place.bytes += bytes.len();
        for what in self.net.caught(bytes) {
            match what {
                PLANTED => place.planted += 1,
                what if what == known => {}
                what => {
                    place.found.insert((thing.to_owned(), what));
                }
            }
        }
    }

    /// Searches every file below a folder.
    pub(crate) fn files(&mut self, place: &'static str, folder: &Path) {
        for path in files_below(folder) {
            // Some files disappear at once.
            if let Ok(bytes) = fs::read(&path) {
                self.look(place, &path.display().to_string(), &bytes);
            }
        }
    }

    /// Searches the responses of every read-only operation, for every user.
    pub(crate) fn answers(&mut self, installation: &Installation) {
        let document = installation.harness.admin.get("/api/v1/openapi.json").json();
        let callers: [(&'static str, &Client, &[&str]); 3] = [
            ("answers to a viewer", &installation.viewer, &[]),
            ("answers to a member", &installation.member, &VARIABLES),
            ("answers to an administrator", &installation.harness.admin, &OF_AN_ADMINISTRATOR),
        ];
        for operation in operations(&document).iter().filter(|operation| operation.method == "GET") {
            for (place, client, visible) in &callers {
                let answer = client.get(&largest(operation, installation));
                assert!(answer.status < 500, "{}: {}", operation.name(), answer.status);
                let shown = match serde_json::from_str::<Value>(&answer.text) {
                    Ok(mut body) => {
                        hide(&mut body, visible);
                        body.to_string()
                    }
                    Err(_) => answer.text,
                };
                let place = if operation.path.ends_with("/audit/logs") { "audit log" } else { *place };
                self.look(place, &operation.name(), shown.as_bytes());
            }
        }
    }

    /// Searches the received notifications. Their destination is not part of them.
    pub(crate) fn messages(&mut self, installation: &Installation) {
        for message in installation.receiver.messages() {
            let request = &message.request;
            let text = format!("{:?}\n{}", request.headers, request.body);
            self.look("messages by HTTP", &format!("message {}", message.number), text.as_bytes());
        }
        for mail in installation.mail.taken() {
            let text = format!("{:?}\n{}\n{:?}", mail.headers, mail.text, mail.parameters);
            self.look("mails", mail.header("subject").unwrap_or_default(), text.as_bytes());
        }
    }

    /// Searches the engine's data of images, and of containers except their environment.
    pub(crate) fn engine(&mut self, installation: &Installation) {
        let traces = installation.harness.engine();
        for image in traces.images() {
            let output = docker(&["image", "inspect", &image]) + &docker(&["history", "--no-trunc", &image]);
            self.look_past("images", &image, output.as_bytes(), BUILD_VARIABLE);
        }
        const SHOWN: &str = "{{json .Name}} {{json .Path}} {{json .Args}} {{json .Config.Cmd}} {{json .Config.Labels}} \
                             {{json .Mounts}} {{json .HostConfig}}";
        for container in traces.containers() {
            let output = docker(&["container", "inspect", "--format", SHOWN, &container]);
            self.look("containers, apart from their environment", &container, output.as_bytes());
        }
    }
}

/// Returns the path of an operation, with the largest page size.
fn largest(operation: &Operation, installation: &Installation) -> String {
    let path = operation.filled(&installation.ids);
    let joint = if path.contains('?') { '&' } else { '?' };
    let has_pages = operation.parameters("query", false).iter().any(|name| name == "page_size");
    if has_pages { format!("{path}{joint}page_size=1000") } else { path }
}

/// Clears the fields of these names, at any depth.
fn hide(value: &mut Value, names: &[&str]) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if names.contains(&name.as_str()) && value.is_string() {
                    *value = Value::Null;
                }
                hide(value, names);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| hide(item, names)),
        _ => {}
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => files_below(&entry.path()),
            Ok(kind) if kind.is_file() => vec![entry.path()],
            _ => Vec::new(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_named_fields_are_hidden() {
        let mut body = json!({"data": [{"secret": "a", "name": "b", "inner": {"secret": "c"}}]});
        hide(&mut body, &["secret"]);
        assert_eq!(body, json!({"data": [{"secret": null, "name": "b", "inner": {"secret": null}}]}));
    }
}
