//! The remote that `git push` deploys to.

use std::{
    env,
    io::{self, Read as _},
    process::Command,
};

use clap::Args;
use url::Url;

use crate::{
    failure::{Failure, Kind, Outcome, failed},
    manifest::Manifest,
    names,
    repository::Repository,
    session::Session,
    verbs::init,
};

#[derive(Args, Debug)]
pub struct GitRemote {
    /// Application, by name, name@environment or id; by default that of launchway.toml, or named as this folder
    app: Option<String>,
    /// Name of the remote
    #[arg(long, default_value = "launchway", value_name = "NAME")]
    remote: String,
    /// Answer a request of git for credentials, which is read from the standard input
    #[arg(long, hide = true, value_name = "OPERATION")]
    credential: Option<String>,
}

/// Adds the remote, and makes git get the credentials for it from this program.
pub(crate) fn run(arguments: &GitRemote, session: &Session<'_>) -> Outcome {
    if let Some(operation) = &arguments.credential {
        return answer(operation, session);
    }
    let repository = Repository::here()?.ok_or_else(|| {
        Failure::new(Kind::Failed, "this folder is not in a git repository").hint("run `git init` first")
    })?;
    let address = address(arguments.app.as_deref(), &repository, session)?;
    let remote = &arguments.remote;
    if remote.starts_with('-') {
        return Err(Failure::new(Kind::Usage, format!("`{remote}` is not the name of a remote")));
    }
    let git = |arguments: &[&str]| git(&repository, arguments);
    match repository.remote(remote) {
        Some(_) => git(&["remote", "set-url", remote, &address])?,
        None => git(&["remote", "add", remote, &address])?,
    }
    let key = format!("credential.{}.helper", session.server.url());
    // An empty value keeps the helpers of other settings from storing the token.
    git(&["config", "--local", "--replace-all", &key, ""])?;
    git(&["config", "--local", "--add", &key, &helper(session)?])?;
    let branch = repository.branch().unwrap_or_else(|| "main".to_owned());
    if session.screen.is_for_programs() {
        return session.screen.json(&serde_json::json!({"remote": remote, "url": address}));
    }
    session.screen.remark(&format!("Added the remote {remote}: {address}"));
    session.screen.remark(&format!("`git push {remote} {branch}` deploys it"));
    Ok(())
}

/// Returns the address of an application's repository: by its id, or for a new application by its name.
fn address(app: Option<&str>, repository: &Repository, session: &Session<'_>) -> Outcome<String> {
    let title = match (app, Manifest::here()?) {
        (Some(app), _) => app.to_owned(),
        (None, Some(manifest)) => manifest.title()?,
        (None, None) => init::name_of(repository.root()),
    };
    let server = session.server.url();
    match names::application(&session.server, &title) {
        Ok(application) => Ok(format!("{server}/git/{}.git", application.id)),
        Err(failure) if failure.kind == Kind::Missing => {
            let organization = session.server.get("/organizations").send()?;
            let organization = organization["name"].as_str().unwrap_or_default().to_owned();
            let (name, environment) = title.rsplit_once('@').unwrap_or((&title, "production"));
            let mut url = Url::parse(server)
                .map_err(|error| Failure::new(Kind::Failed, format!("`{server}` is not a URL: {error}")))?;
            let file = format!("{name}.git");
            if let Ok(mut parts) = url.path_segments_mut() {
                parts.pop_if_empty().extend(["git", &organization, environment, &file]);
            }
            Ok(url.to_string())
        }
        Err(failure) => Err(failure),
    }
}

/// Returns the command that git runs for credentials. It names no token.
fn helper(session: &Session<'_>) -> Outcome<String> {
    let program = env::current_exe().map_err(failed("the path of this program is not known"))?;
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let context = session.context.as_deref().map(|name| format!(" --context {}", quoted(name)));
    let program = quoted(&program.display().to_string());
    Ok(format!("!{program} git-remote{} --credential", context.unwrap_or_default()))
}

/// Prints the credentials if git asks for those of this server.
fn answer(operation: &str, session: &Session<'_>) -> Outcome {
    let mut asked = String::new();
    io::stdin().read_to_string(&mut asked).map_err(failed("the request of git cannot be read"))?;
    if operation != "get" || !is_for(&asked, session.server.url()) {
        return Ok(());
    }
    match session.server.token() {
        Some(token) => session.screen.print(&format!("username=launchway\npassword={token}\n")),
        None => Ok(()),
    }
}

/// Returns whether git asks for the credentials of the server at `url`.
fn is_for(asked: &str, url: &str) -> bool {
    let field = |name: &str| asked.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let Ok(url) = Url::parse(url) else { return false };
    let host = match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (Some(host), None) => host.to_owned(),
        (None, _) => return false,
    };
    field("protocol") == Some(url.scheme())
        && field("host").is_some_and(|asked| asked.eq_ignore_ascii_case(&host))
}

fn git(repository: &Repository, arguments: &[&str]) -> Outcome {
    let output = Command::new("git").args(arguments).current_dir(repository.root()).output();
    let output = output.map_err(failed("git cannot be run"))?;
    if output.status.success() {
        return Ok(());
    }
    let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Failure::new(Kind::Failed, format!("git failed: {reason}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_for_one_server() {
        let asked = |protocol: &str, host: &str| format!("protocol={protocol}\nhost={host}\n\n");
        for (protocol, host, url, expected) in [
            ("http", "127.0.0.1:8080", "http://127.0.0.1:8080", true),
            ("https", "Deploy.example.com", "https://deploy.example.com", true),
            ("http", "deploy.example.com", "https://deploy.example.com", false),
            ("https", "deploy.example.com.evil.example", "https://deploy.example.com", false),
            ("http", "127.0.0.1:8081", "http://127.0.0.1:8080", false),
        ] {
            assert_eq!(is_for(&asked(protocol, host), url), expected, "{protocol}://{host} {url}");
        }
        assert!(!is_for("", "http://127.0.0.1:8080"));
    }
}
