//! The top of `launchway --help`: first the commands of users, then those of the server.

use std::fmt::Write as _;

use clap::{Command, Subcommand as _};

use crate::cli::Verb;

/// Commands by group. Commands without a group are listed at the end.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Applications",
        &[
            "init",
            "deploy",
            "apps",
            "app",
            "logs",
            "open",
            "restart",
            "stop",
            "env",
            "domains",
            "previews",
            "git-remote",
            "webhook-secret",
            "deploy-key",
        ],
    ),
    ("Deployments", &["deployments", "rollback", "cancel"]),
    ("Extensions", &["extensions", "run"]),
    (
        "Servers and account",
        &["login", "register", "join", "logout", "whoami", "context", "password", "two-factor", "tokens"],
    ),
    ("Organizations", &["org", "members", "invitations", "audit", "notifications"]),
    ("Shell completion and manual", &["completions", "man"]),
    (
        "Server administration",
        &[
            "serve", "cluster", "nodes", "node", "proxy", "config", "admin", "backup", "database", "key",
            "upgrade", "doctor", "migrate", "openapi",
        ],
    ),
];

/// Returns the template of the help, with every command in its group.
pub(crate) fn template() -> String {
    let verbs = Verb::augment_subcommands(Command::new("launchway"));
    format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}Options:\n{{options}}", grouped(&verbs))
}

fn grouped(verbs: &Command) -> String {
    let all: Vec<_> = verbs.get_subcommands().filter(|verb| !verb.is_hide_set()).collect();
    let is_known = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let others: Vec<_> = all.iter().map(|verb| verb.get_name()).filter(|name| !is_known(name)).collect();
    let width = all.iter().map(|verb| verb.get_name().len()).max().unwrap_or_default();
    let mut text = String::new();
    for (heading, names) in GROUPS.iter().copied().chain([("More", others.as_slice())]) {
        let mut lines = String::new();
        for verb in names.iter().filter_map(|name| verbs.find_subcommand(name)) {
            let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
            // Writing to a string cannot fail.
            let _ = writeln!(lines, "  {:width$}  {about}", verb.get_name());
        }
        if !lines.is_empty() {
            let _ = writeln!(text, "{heading}:\n{lines}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use crate::cli::Arguments;

    #[test]
    fn every_verb_is_there_once_in_a_group_of_its_own() {
        let help = Arguments::command().render_help().to_string();
        for verb in Arguments::command().get_subcommands() {
            let line = format!("\n  {} ", verb.get_name());
            assert_eq!(help.matches(&line).count(), 1, "{}\n{help}", verb.get_name());
        }
        assert!(!help.contains("\nMore:"), "a verb is in no group of GROUPS:\n{help}");
    }

    #[test]
    fn users_come_before_servers() {
        let help = Arguments::command().render_help().to_string();
        let place = |text: &str| help.find(text).unwrap();
        assert!(place("\n  deploy ") < place("\n  login "));
        assert!(place("\n  login ") < place("\n  serve "));
        assert!(place("\n  serve ") < place("--output"));
    }
}
