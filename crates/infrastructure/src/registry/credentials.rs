//! The logins of docker's command line.

use std::{io::ErrorKind, path::Path};

use launchway_domain::secret::Secret;
use serde_json::Value;

/// Returns the value of an `Authorization` header for a registry, as `docker login` stores it in the file `config.json` of a
/// folder; `None` if there is no login. Fails with the reason if there is one that cannot be read: Launchway runs no
/// credential helpers, and uses no identity tokens.
pub(super) async fn of(folder: Option<&Path>, host: &str) -> Result<Option<Secret<String>>, String> {
    let Some(file) = folder.map(|folder| folder.join("config.json")) else { return Ok(None) };
    let text = match tokio::fs::read(&file).await {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{} cannot be read: {error}", file.display())),
    };
    let config: Value =
        serde_json::from_slice(&text).map_err(|error| format!("{} is no JSON: {error}", file.display()))?;
    login(&config, host)
}

fn login(config: &Value, host: &str) -> Result<Option<Secret<String>>, String> {
    let text = |value: Option<&Value>| {
        value.and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let logins = config.get("auths").and_then(Value::as_object);
    let entry = logins.and_then(|logins| logins.iter().find(|(key, _)| hostname(key) == host));
    let entry = entry.map(|(_, entry)| entry);
    if let Some(login) = text(entry.and_then(|entry| entry.get("auth"))) {
        return Ok(Some(Secret::new(format!("Basic {login}"))));
    }
    let helper = text(config.get("credHelpers").and_then(|helpers| helpers.get(host)));
    let helper = helper.or_else(|| entry.and(text(config.get("credsStore"))));
    match helper {
        Some(helper) => Err(format!(
            "its password is kept by the credential helper `{helper}` of docker, which Launchway does not run"
        )),
        None if entry.is_some_and(|entry| entry.get("identitytoken").is_some()) => {
            Err("docker logs in to it with an identity token, which Launchway does not use".to_owned())
        }
        None => Ok(None),
    }
}

/// Returns the host of a key, which older versions of docker stored as a URL.
fn hostname(key: &str) -> &str {
    let bare = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key);
    bare.split_once('/').map_or(bare, |(host, _)| host)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_login_is_found_by_the_host_of_its_registry() {
        let config = json!({
            "auths": { "r:5000": {"auth": "YWRhOnB3"}, "https://old.example/v1/": {"auth": "b2xk"}, "none": {} },
        });
        for (host, expected) in [
            ("r:5000", Some("Basic YWRhOnB3")),
            ("old.example", Some("Basic b2xk")),
            ("r", None),
            ("none", None),
        ] {
            let login = login(&config, host).unwrap();
            assert_eq!(login.as_ref().map(|login| login.expose().as_str()), expected, "{host}");
        }
    }

    #[test]
    fn a_login_of_a_helper_or_by_a_token_is_refused() {
        let config = json!({
            "auths": { "kept": {}, "token": {"auth": "", "identitytoken": "x"} },
            "credHelpers": { "cloud": "gcloud" },
        });
        assert!(login(&config, "kept").unwrap().is_none());
        assert!(login(&config, "cloud").unwrap_err().contains("`gcloud`"));
        assert!(login(&config, "token").unwrap_err().contains("identity token"));
        let config = json!({ "auths": { "kept": {} }, "credsStore": "pass" });
        assert!(login(&config, "kept").unwrap_err().contains("`pass`"));
        assert!(login(&config, "other").unwrap().is_none());
    }

    #[tokio::test]
    async fn a_file_that_is_missing_has_no_login_and_a_broken_one_fails() {
        let folder = tempfile::tempdir().unwrap();
        assert!(of(Some(folder.path()), "r").await.unwrap().is_none());
        assert!(of(None, "r").await.unwrap().is_none());
        std::fs::write(folder.path().join("config.json"), "{").unwrap();
        assert!(of(Some(folder.path()), "r").await.unwrap_err().contains("is no JSON"));
    }
}
