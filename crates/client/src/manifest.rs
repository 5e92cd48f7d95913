//! `launchway.toml`: the configuration of an application in its repository.

use std::{
    fs::{self, OpenOptions},
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};

use crate::{
    failure::{Failure, Kind, Outcome, failed},
    repository::Repository,
    screen::visible,
};

pub(crate) const FILE: &str = "launchway.toml";

/// The default environment of an application.
const USUAL_ENVIRONMENT: &str = "production";

/// The allowed keys and their descriptions: the fields of the API. Variables are not among them, because
/// they are secrets, which do not belong in a repository.
pub(crate) const KEYS: &[(&str, &str)] = &[
    ("name", "Name, which identifies the application together with the environment"),
    ("environment", "Environment: production, staging, development or another name"),
    (
        "repository",
        "Repository that the server clones, without it the files are uploaded; for build_pack = \"image\" the image",
    ),
    ("branch", "Branch to deploy"),
    ("build_pack", "Build pack: dockerfile, docker-compose, image, static or nixpacks"),
    ("base_path", "Folder of the application in the repository"),
    ("dockerfile_path", "Path of the Dockerfile or compose file in that folder"),
    ("port", "Port that the application listens on in its container"),
    ("replicas", "Number of copies that run, from 1 to 100"),
    ("domain", "Custom domain"),
    ("health_check_path", "Path that must return 200 to 399 before a version gets traffic"),
    ("pre_run_command", "Command to run in the new image before it gets traffic"),
    ("post_run_command", "Command to run in the new image after it gets traffic"),
    ("labels", "Labels of the application"),
    ("auto_deploy", "Deploy on push: true or false"),
    ("watch_paths", "Patterns as in .gitignore; a push that changes no path that they match does not deploy"),
    ("proxy_server", "launchway, or caddy if Caddy terminates TLS in front of it"),
];

/// The configuration of an application in its repository.
#[derive(Debug, PartialEq)]
pub(crate) struct Manifest {
    fields: Map<String, Value>,
}

/// A field that has another value on the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) key: String,
    pub(crate) there: String,
    pub(crate) here: String,
}

impl Manifest {
    /// Reads the manifest of the current repository, or else of the current folder.
    pub(crate) fn here() -> Outcome<Option<Self>> {
        let path = path(Repository::here()?.as_ref());
        match fs::read_to_string(&path) {
            Ok(text) => Self::parse(&text).map(Some),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(format!("{} cannot be read", path.display()))(error)),
        }
    }

    /// Creates a manifest with these fields, without those that are empty.
    pub(crate) fn of(fields: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        let fields = fields.into_iter().filter(|(_, value)| value.as_str() != Some(""));
        Self { fields: fields.map(|(key, value)| (key.to_owned(), value)).collect() }
    }

    pub(crate) fn parse(text: &str) -> Outcome<Self> {
        let wrong = |what: &str| Failure::new(Kind::Usage, format!("{FILE} is invalid: {what}"));
        let fields: Map<String, Value> =
            toml::from_str(text).map_err(|error| wrong(error.to_string().trim_end()))?;
        for key in fields.keys() {
            if key.ends_with("_variables") {
                return Err(wrong(&format!("unknown key `{key}`")).hint(
                    "variables are stored on the server, not in the repository: use `launchway env set`",
                ));
            }
            if !KEYS.iter().any(|(known, _)| known == key) {
                let known: Vec<_> = KEYS.iter().map(|(known, _)| *known).collect();
                return Err(
                    wrong(&format!("unknown key `{key}`")).hint(format!("valid keys: {}", known.join(", ")))
                );
            }
        }
        Ok(Self { fields })
    }

    /// Returns the application as it can be named on the command line.
    pub(crate) fn title(&self) -> Outcome<String> {
        let name = self.text("name").ok_or_else(|| {
            Failure::new(Kind::Usage, format!("{FILE} has no name")).hint("add name = \"…\"")
        })?;
        Ok(format!("{name}@{}", self.text("environment").unwrap_or(USUAL_ENVIRONMENT)))
    }

    /// Returns the text of a field.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.fields.get(key)?.as_str().filter(|text| !text.is_empty())
    }

    /// Returns the body of the request that creates the application.
    pub(crate) fn body(&self) -> Value {
        let mut fields = self.fields.clone();
        fields.entry("environment").or_insert_with(|| USUAL_ENVIRONMENT.into());
        fields.into()
    }

    /// Returns the fields that differ on the server. Fields that the file does not contain are not
    /// compared.
    pub(crate) fn differences(&self, there: &Value) -> Vec<Difference> {
        let differing = self.fields.iter().filter(|(key, here)| !is_same(key, here, &there[key.as_str()]));
        differing
            .map(|(key, here)| Difference {
                key: key.clone(),
                there: shown(&there[key.as_str()]),
                here: shown(here),
            })
            .collect()
    }

    /// Returns the fields of these differences.
    pub(crate) fn change(&self, differences: &[Difference]) -> Value {
        let fields = differences.iter().filter_map(|one| self.fields.get_key_value(&one.key));
        fields.map(|(key, value)| (key.clone(), value.clone())).collect::<Map<_, _>>().into()
    }

    /// Returns the manifest as JSON.
    pub(crate) fn json(&self) -> Value {
        self.fields.clone().into()
    }

    /// Writes the manifest to the repository, or else to the current folder; replaces an existing one only if `overwrite` is
    /// set.
    pub(crate) fn write(&self, repository: Option<&Repository>, overwrite: bool) -> Outcome<PathBuf> {
        let path = path(repository);
        let mut options = OpenOptions::new();
        options.write(true);
        let opened = match overwrite {
            true => options.create(true).truncate(true).open(&path),
            false => options.create_new(true).open(&path),
        };
        let written = opened.and_then(|mut file| file.write_all(self.to_toml().as_bytes()));
        match written {
            Ok(()) => Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(is_there(&path)),
            Err(error) => Err(failed(format!("{} cannot be written", path.display()))(error)),
        }
    }

    /// Returns the file, with a description of each key.
    fn to_toml(&self) -> String {
        let mut text = "# The application that `launchway deploy` deploys. The keys are the fields of the API.\n\
                        # Missing keys keep their value on the server. Set variables with `launchway env set`.\n"
            .to_owned();
        for (key, meaning) in KEYS {
            if let Some(value) = self.fields.get(*key) {
                text.push_str(&format!("\n# {meaning}\n{key} = {}\n", literal(value)));
            }
        }
        let rest: Vec<_> = KEYS.iter().filter(|(key, _)| !self.fields.contains_key(*key)).collect();
        if !rest.is_empty() {
            text.push_str("\n# Other keys:\n");
        }
        for (key, meaning) in rest {
            text.push_str(&format!("# {key}: {meaning}\n"));
        }
        text
    }
}

/// The failure if the file already exists.
pub(crate) fn is_there(path: &Path) -> Failure {
    Failure::new(Kind::Conflict, format!("{} already exists", path.display()))
        .hint("edit it, or overwrite it with --force")
}

/// Returns the path of the manifest.
pub(crate) fn path(repository: Option<&Repository>) -> PathBuf {
    repository.map_or(Path::new(""), Repository::root).join(FILE)
}

fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => toml::Value::String(text.clone()).to_string(),
        // Numbers, booleans and lists of texts have the same syntax in JSON and TOML.
        other => other.to_string(),
    }
}

/// Returns whether the server has this value already. It normalizes some of them.
fn is_same(key: &str, here: &Value, there: &Value) -> bool {
    let (Some(ours), Some(theirs)) = (here.as_str(), there.as_str()) else { return here == there };
    // An empty text changes nothing.
    if ours.is_empty() {
        return true;
    }
    let ours = ours.trim();
    let path = |text: &str| {
        let parts: Vec<_> = text.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        parts.join("/")
    };
    match key {
        "environment" | "domain" | "proxy_server" => ours.eq_ignore_ascii_case(theirs),
        "build_pack" => {
            let ours = ours.to_ascii_lowercase();
            let is_compose = matches!(ours.as_str(), "compose" | "dockercompose");
            ours == theirs || (is_compose && theirs == "docker-compose")
        }
        "base_path" | "dockerfile_path" => path(ours) == path(theirs),
        "pre_run_command" | "post_run_command" => here == there,
        _ => ours == theirs,
    }
}

/// Formats a value on one line.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() => "(none)".to_owned(),
        Value::String(text) => visible(text),
        Value::Null => "(none)".to_owned(),
        other => visible(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let manifest = Manifest::of([
            ("name", json!("my \"shop\"")),
            ("environment", json!("production")),
            ("port", json!(8080)),
            ("labels", json!(["a", "b c"])),
            ("auto_deploy", json!(false)),
            ("health_check_path", json!("")),
        ]);
        let text = manifest.to_toml();
        assert_eq!(Manifest::parse(&text).unwrap(), manifest);
        for (key, _) in KEYS {
            assert!(text.contains(&format!("\n{key} = ")) || text.contains(&format!("\n# {key}: ")), "{key}");
        }
    }

    #[test]
    fn unknown_keys_are_named_and_variables_have_another_place() {
        let failure = Manifest::parse("prot = 1").unwrap_err();
        assert!(failure.to_string().contains("`prot`"), "{failure}");
        assert!(failure.advice().unwrap().contains("port"));
        let failure = Manifest::parse("[environment_variables]\nA = \"1\"").unwrap_err();
        assert!(failure.advice().unwrap().contains("launchway env set"));
        let failure = Manifest::parse("name = ").unwrap_err();
        assert!(failure.to_string().contains("line 1"), "{failure}");
    }

    #[test]
    fn the_application_is_named_with_its_environment() {
        let title = |text: &str| Manifest::parse(text).unwrap().title();
        assert_eq!(title("name = \"shop\"").unwrap(), "shop@production");
        assert_eq!(title("name = \"shop\"\nenvironment = \"staging\"").unwrap(), "shop@staging");
        assert_eq!(title("port = 1").unwrap_err().kind, Kind::Usage);
    }

    #[test]
    fn only_what_is_said_and_differs_is_a_difference() {
        let there = json!({"name": "shop", "branch": "main", "port": 8080, "base_path": "/apps/web",
            "environment": "production", "build_pack": "docker-compose", "domain": "shop.example.com",
            "labels": ["a"], "auto_deploy": true, "health_check_path": "", "pre_run_command": "./migrate"});
        let same = "name = \"shop\"\nbranch = \" main \"\nport = 8080\nbase_path = \"apps/./web/\"\n\
                    environment = \"Production\"\nbuild_pack = \"compose\"\ndomain = \"Shop.example.com\"\n\
                    labels = [\"a\"]\nauto_deploy = true\nhealth_check_path = \"\"\n";
        assert_eq!(Manifest::parse(same).unwrap().differences(&there), []);

        let other = "branch = \"develop\"\nport = 3000\nlabels = []\nhealth_check_path = \"/up\"\n\
                     pre_run_command = \"./migrate \"\n";
        let manifest = Manifest::parse(other).unwrap();
        let differences = manifest.differences(&there);
        let keys: Vec<_> = differences.iter().map(|one| one.key.as_str()).collect();
        assert_eq!(keys, ["branch", "health_check_path", "labels", "port", "pre_run_command"]);
        assert_eq!((differences[0].there.as_str(), differences[0].here.as_str()), ("main", "develop"));
        assert_eq!(differences[1].there, "(none)");
        assert_eq!(manifest.change(&differences[..1]), json!({"branch": "develop"}));
    }
}
