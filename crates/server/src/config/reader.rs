//! Reads settings one by one, and reports all problems at once.

use std::{collections::BTreeMap, fmt, path::Path};

/// The problem of one setting.
#[derive(Debug)]
pub(crate) struct Problem {
    what: String,
    hint: String,
}

impl Problem {
    pub(super) fn new(what: String, hint: &str) -> Self {
        Self { what, hint: hint.to_owned() }
    }
}

/// The problems of the configuration.
#[derive(Debug)]
pub(crate) struct Problems(pub(crate) Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|Problem { what, hint }| writeln!(f, "  {what}\n    hint: {hint}"))
    }
}

/// The settings to be checked.
pub(super) struct Reader {
    settings: BTreeMap<String, String>,
    effective: Vec<(&'static str, String)>,
    problems: Vec<Problem>,
}

impl Reader {
    pub(super) fn new(settings: BTreeMap<String, String>, problems: Vec<Problem>) -> Self {
        Self { settings, effective: Vec::new(), problems }
    }

    /// Reads a setting with a default. `None` means that it is invalid, which [`finish`](Self::finish)
    /// reports.
    pub(super) fn setting<T>(
        &mut self,
        name: &'static str,
        default: &str,
        parse: fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        self.read(name, default, parse, str::to_owned)
    }

    /// Reads a setting that may contain a password.
    pub(super) fn secret<T>(
        &mut self,
        name: &'static str,
        default: &str,
        parse: fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        self.read(name, default, parse, super::values::without_password)
    }

    /// Reads an optional setting.
    pub(super) fn optional<T>(
        &mut self,
        name: &'static str,
        parse: fn(&str) -> Result<T, String>,
    ) -> Option<Option<T>> {
        let is_set = self.settings.get(name).is_some_and(|value| !value.trim().is_empty());
        if is_set {
            self.setting(name, "", parse).map(Some)
        } else {
            self.settings.remove(name);
            self.effective.push((name, String::new()));
            Some(None)
        }
    }

    /// Adds a problem of several settings together.
    pub(super) fn refuse(&mut self, what: String, hint: &str) {
        self.problems.push(Problem { what, hint: hint.to_owned() });
    }

    /// Reports all problems, and unknown settings.
    pub(super) fn finish(mut self) -> Result<Vec<(&'static str, String)>, Problems> {
        let is_ours = |name: &&String| name.starts_with("LAUNCHWAY_") && !name.starts_with("LAUNCHWAY_TEST_");
        let is_read_elsewhere = |name: &&String| {
            *name == "LAUNCHWAY_CONFIG" || launchway_client::VARIABLES.contains(&name.as_str())
        };
        let unknown = self.settings.keys().filter(is_ours).filter(|name| !is_read_elsewhere(name));
        let unknown: Vec<_> = unknown
            .map(|name| Problem { what: format!("{name} is not a setting"), hint: self.did_you_mean(name) })
            .collect();
        self.problems.extend(unknown);
        if self.problems.is_empty() { Ok(self.effective) } else { Err(Problems(self.problems)) }
    }

    fn read<T>(
        &mut self,
        name: &'static str,
        default: &str,
        parse: fn(&str) -> Result<T, String>,
        show: fn(&str) -> String,
    ) -> Option<T> {
        let value = self.settings.remove(name).unwrap_or_default();
        // An empty variable counts as absent: that is how most shells and tools unset one.
        let value = if value.trim().is_empty() { default } else { value.trim() };
        self.effective.push((name, show(value)));
        parse(value)
            .map_err(|hint| {
                let what = format!("{name} is `{}`", show(value));
                self.problems.push(Problem { what, hint });
            })
            .ok()
    }

    fn did_you_mean(&self, name: &str) -> String {
        let nearest = self.effective.iter().min_by_key(|(known, _)| distance(known, name));
        match nearest {
            Some((known, _)) if distance(known, name) <= 4 => format!("did you mean {known}?"),
            _ => "`launchway config` lists them all".to_owned(),
        }
    }
}

/// Returns the edit distance of two names: insertions, deletions and replacements.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.bytes().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, b) in other.bytes().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

/// Reads the settings of a TOML file, and their problems.
pub(super) fn file(path: &Path) -> Result<(BTreeMap<String, String>, Vec<Problem>), Problems> {
    let problem = |what: String, hint: &str| Problems(vec![Problem { what, hint: hint.to_owned() }]);
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        problem(format!("the file `{shown}` cannot be read: {error}"), "see --config and LAUNCHWAY_CONFIG")
    })?;
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        problem(
            format!("the file `{shown}` is not valid TOML: {}", error.message()),
            "lines look like LAUNCHWAY_BIND = \"127.0.0.1:8080\"",
        )
    })?;
    let (settings, problems): (Vec<_>, Vec<_>) = table
        .into_iter()
        .map(|(name, value)| match as_text(&value) {
            Some(text) if name.starts_with("LAUNCHWAY_") => Ok((name, text)),
            Some(_) => Err(Problem {
                what: format!("{name} in `{shown}` is not a setting"),
                hint: "the names are those of the environment variables, such as LAUNCHWAY_BIND".to_owned(),
            }),
            None => Err(Problem {
                what: format!("{name} in `{shown}` has a value of a wrong type"),
                hint: "a setting is a string, a number, a boolean or a list of them".to_owned(),
            }),
        })
        .partition(Result::is_ok);
    let problems = problems.into_iter().filter_map(Result::err).collect();
    Ok((settings.into_iter().flatten().collect(), problems))
}

fn as_text(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Boolean(on) => Some(on.to_string()),
        toml::Value::Array(items) => Some(items.iter().map(as_text).collect::<Option<Vec<_>>>()?.join(",")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn read(text: &str) -> Result<(BTreeMap<String, String>, Vec<Problem>), Problems> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        super::file(file.path())
    }

    #[test]
    fn a_file_has_the_names_of_the_environment() {
        let settings = read("LAUNCHWAY_BIND = \"[::1]:80\"\nLAUNCHWAY_MAX_BUILDS = 3\nLAUNCHWAY_TRUSTED_PROXIES = [\"10.0.0.1\", \"10.0.0.2\"]").unwrap().0;
        assert_eq!(settings["LAUNCHWAY_BIND"], "[::1]:80");
        assert_eq!(settings["LAUNCHWAY_MAX_BUILDS"], "3");
        assert_eq!(settings["LAUNCHWAY_TRUSTED_PROXIES"], "10.0.0.1,10.0.0.2");
    }

    #[test]
    fn what_is_wrong_with_a_file_is_reported() {
        assert!(read("LAUNCHWAY_BIND = ").unwrap_err().to_string().contains("not valid TOML"));
        let problems = Problems(read("bind = \"x\"\n[LAUNCHWAY_LOG]\na = 1").unwrap().1).to_string();
        assert!(problems.contains("bind in") && problems.contains("LAUNCHWAY_LOG in"), "{problems}");
        assert!(super::file(Path::new("/nowhere")).unwrap_err().to_string().contains("cannot be read"));
    }
}
