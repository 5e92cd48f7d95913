//! Maps the error messages of git to messages for users.

use data_encoding::BASE64;
use launchway_domain::{
    applications::{GitPlace, Transport},
    deployments::{GitSource, StepError},
};
use launchway_system::process::{Finished, ProcessError};

/// The error of a git call, and its possible remedies.
#[derive(Debug)]
pub(super) struct GitError {
    pub(super) error: StepError,
    /// True if a damaged cache may be the cause.
    pub(super) may_be_the_cache: bool,
    /// True if the server does not serve a commit by its hash.
    pub(super) is_unknown_commit: bool,
}

impl GitError {
    pub(super) fn refused(sentence: String) -> Self {
        StepError::Rejected(sentence).into()
    }
}

impl From<StepError> for GitError {
    fn from(error: StepError) -> Self {
        Self { error, may_be_the_cache: false, is_unknown_commit: false }
    }
}

/// The class of an error that users or operators can act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    NoProgram(&'static str),
    DiskFull,
    NotWritable,
    NoMoreProcesses,
    LongNames,
    UnknownCommit,
    HostKeyChanged,
    HostKeyUnknown,
    KeyRefused,
    NeedsCredentials,
    NotAllowed,
    Moved,
    NotFound,
    BadCertificate,
    TooSlow,
    Unreachable,
    Dangerous,
    TooLarge,
}

/// Parts of the error messages of git, curl and ssh. The first match counts: the last ones also appear
/// beside others.
const MEANINGS: &[(&str, Meaning)] = &[
    ("failed to execute prlimit", Meaning::NoProgram("prlimit")),
    ("ssh: not found", Meaning::NoProgram("ssh")),
    ("cannot run ssh", Meaning::NoProgram("ssh")),
    ("git-remote-https: not found", Meaning::NoProgram("git-remote-https")),
    ("is not a git command", Meaning::NoProgram("git-remote-https")),
    ("No space left on device", Meaning::DiskFull),
    ("Disk quota exceeded", Meaning::DiskFull),
    ("Resource temporarily unavailable", Meaning::NoMoreProcesses),
    ("File name too long", Meaning::LongNames),
    ("nable to create", Meaning::NotWritable),
    ("insufficient permission", Meaning::NotWritable),
    ("Read-only file system", Meaning::NotWritable),
    ("not our ref", Meaning::UnknownCommit),
    ("does not allow request for unadvertised object", Meaning::UnknownCommit),
    ("couldn't find remote ref", Meaning::UnknownCommit),
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", Meaning::HostKeyChanged),
    ("Host key verification failed", Meaning::HostKeyUnknown),
    ("Permission denied (", Meaning::KeyRefused),
    ("Too many authentication failures", Meaning::KeyRefused),
    ("could not read Username", Meaning::NeedsCredentials),
    ("could not read Password", Meaning::NeedsCredentials),
    ("Authentication failed", Meaning::NeedsCredentials),
    ("returned error: 401", Meaning::NeedsCredentials),
    ("returned error: 403", Meaning::NeedsCredentials),
    ("not allowed", Meaning::NotAllowed),
    ("returned error: 30", Meaning::Moved),
    ("returned error: 404", Meaning::NotFound),
    ("Repository not found", Meaning::NotFound),
    ("could not be found", Meaning::NotFound),
    ("repository not exported", Meaning::NotFound),
    ("does not appear to be a git repository", Meaning::NotFound),
    ("' not found", Meaning::NotFound),
    ("certificate", Meaning::BadCertificate),
    ("Operation too slow", Meaning::TooSlow),
    ("timed out", Meaning::TooSlow),
    ("Timeout, server", Meaning::TooSlow),
    ("ould not resolve host", Meaning::Unreachable),
    ("Failed to connect", Meaning::Unreachable),
    ("unable to connect", Meaning::Unreachable),
    ("connect to host", Meaning::Unreachable),
    ("Connection re", Meaning::Unreachable),
    ("Connection closed", Meaning::Unreachable),
    ("Empty reply from server", Meaning::Unreachable),
    ("hung up unexpectedly", Meaning::Unreachable),
    ("unexpected disconnect", Meaning::Unreachable),
    ("early EOF", Meaning::Unreachable),
    ("returned error: 5", Meaning::Unreachable),
    ("fsck error", Meaning::Dangerous),
    ("invalid path", Meaning::Dangerous),
    ("File too large", Meaning::TooLarge),
    ("Out of memory", Meaning::TooLarge),
    ("out of memory", Meaning::TooLarge),
];

/// Returns the error for an unsuccessful call.
pub(super) fn explain(finished: Result<Finished, ProcessError>, source: &GitSource) -> GitError {
    let url = source.url.as_str();
    match finished {
        Err(ProcessError::TookTooLong(_, limit)) => {
            GitError::refused(format!("{url} took longer than {} seconds.", limit.as_secs()))
        }
        Err(ProcessError::AnsweredTooMuch(_)) => {
            GitError::refused(format!("{url} is too large: it answers more than can be used."))
        }
        Err(error @ (ProcessError::NotInstalled(_) | ProcessError::Io(..))) => {
            StepError::failed("cannot run git", error).into()
        }
        Ok(finished) => {
            let text = String::from_utf8_lossy(&finished.complaints);
            match meaning(&text) {
                Some(meaning) => GitError {
                    error: sentence(meaning, source),
                    may_be_the_cache: meaning == Meaning::NotWritable,
                    is_unknown_commit: meaning == Meaning::UnknownCommit,
                },
                None => GitError { may_be_the_cache: true, ..unclear(&text, source).into() },
            }
        }
    }
}

fn meaning(text: &str) -> Option<Meaning> {
    let (quoted, own): (Vec<_>, Vec<_>) = text.lines().partition(|line| line.starts_with("remote:"));
    let is_said = |part: &str, meaning: Meaning| {
        // A server's message must not count as a fault of this machine.
        own.iter().any(|line| line.contains(part) && !(meaning.is_fault() && line.contains("remote")))
    };
    let said = MEANINGS.iter().find(|(part, meaning)| is_said(part, *meaning)).map(|(_, meaning)| *meaning);
    let is_missing = || quoted.iter().any(|line| line.contains("not found") || line.contains("not be found"));
    said.or_else(|| is_cut_short(&own).then_some(Meaning::TooLarge))
        .or_else(|| is_missing().then_some(Meaning::NotFound))
}

/// A program that is killed for exceeding its file size limit prints no message itself.
fn is_cut_short(lines: &[&str]) -> bool {
    let mut reasons = lines.iter().filter(|line| is_reason(line));
    reasons.next().is_some_and(|line| line.contains("invalid index-pack output")) && reasons.next().is_none()
}

fn is_reason(line: &str) -> bool {
    line.starts_with("fatal: ") || line.starts_with("error: ")
}

impl Meaning {
    fn is_fault(self) -> bool {
        matches!(self, Self::NoProgram(_) | Self::DiskFull | Self::NotWritable | Self::NoMoreProcesses)
    }
}

fn sentence(meaning: Meaning, source: &GitSource) -> StepError {
    let url = source.url.as_str();
    let is_ssh = matches!(source.url.place(), GitPlace::Remote { transport: Transport::Ssh, .. });
    StepError::Rejected(match meaning {
        Meaning::NoProgram(name) => return StepError::Retryable(format!("`{name}` is not installed")),
        Meaning::DiskFull => return StepError::Retryable("the disk for repositories is full".to_owned()),
        Meaning::NotWritable => return StepError::Retryable("git cannot write to its folders".to_owned()),
        Meaning::NoMoreProcesses => return StepError::Retryable("git cannot start a process".to_owned()),
        Meaning::LongNames => format!("{url} contains files whose names are too long for this machine."),
        Meaning::UnknownCommit => format!("{url} does not have the requested commit."),
        Meaning::HostKeyChanged => {
            format!("{url} presents an ssh host key that differs from the known one. Nothing was sent to it.")
        }
        Meaning::HostKeyUnknown => format!(
            "The ssh host key of {url} is not known: the operator adds it to LAUNCHWAY_GIT_KNOWN_HOSTS."
        ),
        Meaning::KeyRefused if source.key.is_some() => {
            format!("{url} rejects the organization's deploy key: add it to the repository.")
        }
        Meaning::KeyRefused => {
            format!("{url} requires an ssh key: create the organization's deploy key and add it there.")
        }
        Meaning::NeedsCredentials if source.credentials.is_some() => {
            format!("{url} does not accept the credentials that were given for it.")
        }
        Meaning::NeedsCredentials => {
            format!("{url} requires credentials: it is private, or there is no such repository.")
        }
        Meaning::NotAllowed => format!("{url} is not allowed here."),
        Meaning::Moved => format!("{url} has moved: give its new address."),
        Meaning::NotFound if is_ssh && source.key.is_none() => {
            format!("There is no repository {url}, or it requires the organization's deploy key.")
        }
        Meaning::NotFound => format!("There is no repository {url}."),
        Meaning::BadCertificate => format!("{url} presents a certificate that this machine does not trust."),
        Meaning::TooSlow => format!("{url} took too long to answer."),
        Meaning::Unreachable => format!("{url} cannot be reached."),
        Meaning::Dangerous => format!("{url} contains files that are damaged or unsafe for this machine."),
        Meaning::TooLarge => format!("{url} is too large to be fetched."),
    })
}

fn unclear(text: &str, source: &GitSource) -> StepError {
    let url = source.url.as_str();
    let Some(reason) = text.lines().find(|line| is_reason(line)) else {
        return StepError::Rejected(format!("git could not read {url}."));
    };
    let reason: String = reason.chars().skip(7).filter(|c| !c.is_control()).take(300).collect();
    StepError::Rejected(format!("git could not read {url}: {}", without_secrets(&reason, source)))
}

/// Servers may echo credentials, and git shows the messages of servers.
fn without_secrets(text: &str, source: &GitSource) -> String {
    let mut text = without_users(text);
    if let Some(credentials) = &source.credentials {
        let password = credentials.password.expose();
        let pair = BASE64.encode(format!("{}:{password}", credentials.username).as_bytes());
        for secret in [password.as_str(), &pair].into_iter().filter(|secret| !secret.is_empty()) {
            text = text.replace(secret, "***");
        }
    }
    text
}

/// Returns the text with `https://***@host` in the place of `https://user:password@host`.
fn without_users(text: &str) -> String {
    let mut parts = text.split("://");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c == '/' || c.is_whitespace()).unwrap_or(part.len());
        let user = part.get(..end).and_then(|authority| authority.rfind('@'));
        shown.push_str("://");
        shown.push_str(if user.is_some() { "***" } else { "" });
        shown.push_str(part.get(user.unwrap_or(0)..).unwrap_or_default());
    }
    shown
}

#[cfg(test)]
mod tests {
    use launchway_domain::applications::GitUrl;

    use super::*;

    fn source(url: &str) -> GitSource {
        let (url, credentials) = GitUrl::parse(url).unwrap();
        GitSource { url, branch: "main".parse().unwrap(), credentials, key: None }
    }

    #[test]
    fn no_reason_repeats_a_secret() {
        let source = source("https://ada:hunter2@example.com/x");
        let pair = BASE64.encode(b"ada:hunter2");
        for said in [
            "fatal: odd answer hunter2".to_owned(),
            format!("fatal: odd header {pair}"),
            "fatal: odd https://ada:other@example.com/x and https://b:c@d".to_owned(),
        ] {
            let StepError::Rejected(told) = unclear(&said, &source) else { panic!("{said}") };
            for secret in ["hunter2", &pair, "other", "b:c"] {
                assert!(!told.contains(secret), "{told}");
            }
            assert!(told.starts_with("git could not read https://example.com/x: odd "), "{told}");
        }
    }

    #[test]
    fn a_user_is_cut_out_of_every_address() {
        for (text, shown) in [
            ("at 'https://a:b@c/d@e' or ssh://u@h", "at 'https://***@c/d@e' or ssh://***@h"),
            ("plain https://c/d", "plain https://c/d"),
            ("none", "none"),
        ] {
            assert_eq!(without_users(text), shown);
        }
    }

    #[test]
    fn only_this_machine_is_at_fault_for_what_it_lacks() {
        let source = source("https://example.com/x");
        for (said, is_fault) in [
            ("ssh -F ./ssh_config: 1: ssh: not found", true),
            ("fatal: write error: No space left on device", true),
            ("fatal: remote error: No space left on device\nfatal: early EOF", false),
            ("remote: No space left on device\nfatal: early EOF", false),
            ("fatal: repository 'https://example.com/x/' not found", false),
            ("fatal: unable to access: Could not resolve host: example.com", false),
        ] {
            let told = sentence(meaning(said).unwrap(), &source);
            assert_eq!(matches!(told, StepError::Retryable(_)), is_fault, "{said}");
        }
    }
}
