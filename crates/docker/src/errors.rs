//! Classifies the errors of docker: an error of the engine, of the request, or about something that is
//! gone.

use launchway_domain::{deployments::StepError, error_chain::ErrorChain};
use launchway_system::process::ProcessError;

/// The error of a docker call.
#[derive(Debug)]
pub(super) enum EngineError {
    /// The client could not be run to its end.
    Client(ProcessError),
    /// The client exited with an error message.
    Message(String),
    /// The engine does not answer, for this reason.
    Unavailable(String),
}

/// The class of an error message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// The engine does not answer.
    Unavailable,
    /// An error of the engine or of this machine that may be transient.
    Fault,
    /// The requested object does not exist.
    Gone,
    /// The request cannot succeed.
    Refusal,
    /// Not a known message.
    Unknown,
}

/// Parts of error messages in lower case, and their classes. The first match counts.
const MEANINGS: &[(&str, Meaning)] = &[
    // These repeat text of a Dockerfile, which may be anything.
    ("returned a non-zero code: ", Meaning::Refusal),
    ("]: exit code: ", Meaning::Refusal),
    ("did not complete successfully: exit code", Meaning::Refusal),
    ("unknown instruction: ", Meaning::Refusal),
    ("cannot connect to the docker daemon", Meaning::Unavailable),
    ("couldn't connect to docker daemon", Meaning::Unavailable),
    ("error during connect", Meaning::Unavailable),
    ("permission denied while trying to connect", Meaning::Unavailable),
    ("error while fetching server api version", Meaning::Unavailable),
    ("for api route and version", Meaning::Fault),
    ("buildx component is missing", Meaning::Fault),
    ("unknown flag", Meaning::Fault),
    ("no space left on device", Meaning::Fault),
    ("disk quota exceeded", Meaning::Fault),
    ("cannot allocate memory", Meaning::Fault),
    ("resource temporarily unavailable", Meaning::Fault),
    ("too many open files", Meaning::Fault),
    ("input/output error", Meaning::Fault),
    ("read-only file system", Meaning::Fault),
    ("context deadline exceeded", Meaning::Fault),
    ("unexpected eof", Meaning::Fault),
    ("failed to create endpoint", Meaning::Fault),
    ("failed to get digest", Meaning::Fault),
    ("no such container", Meaning::Gone),
    ("no such object", Meaning::Gone),
    ("no such image", Meaning::Gone),
    ("no such network", Meaning::Gone),
    ("no such volume", Meaning::Gone),
    ("no such service", Meaning::Gone),
    ("is already in progress", Meaning::Gone),
    ("no available ipv4 addresses on this network's address pools", Meaning::Refusal),
    ("no command specified", Meaning::Refusal),
    ("executable file not found", Meaning::Refusal),
    ("exec format error", Meaning::Refusal),
    ("argument list too long", Meaning::Refusal),
    ("exec: \"", Meaning::Refusal),
    ("chdir to cwd", Meaning::Refusal),
    ("unable to find user", Meaning::Refusal),
    ("no matching entries in passwd file", Meaning::Refusal),
    ("unable to find image", Meaning::Refusal),
    ("invalid reference format", Meaning::Refusal),
];

/// The engine's message for an address that another container has.
pub(super) const TAKEN_ADDRESS: &str = "Address already in use";

impl EngineError {
    /// Returns whether the requested object does not exist.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::Message(text) if meaning(&last_line(text)) == Meaning::Gone)
    }

    /// Returns whether missing objects are the only errors of a call about several.
    pub(super) fn is_only_about_missing_objects(&self) -> bool {
        let Self::Message(text) = self else { return false };
        let mut lines = text.lines().filter(|line| !is_advice(line)).peekable();
        lines.peek().is_some() && lines.all(|line| meaning(line) == Meaning::Gone || is_missing_network(line))
    }

    /// Returns whether the error message contains these words.
    pub(super) fn says(&self, words: &str) -> bool {
        matches!(self, Self::Message(text) if text.contains(words))
    }

    /// Returns whether the error is transient: the engine removed a layer while another build took it from
    /// the cache, does not find a network while others are created, gets no answer about an overlay because its machine
    /// has just joined its Swarm again, or does not update an object of a Swarm that somebody else changed since the client
    /// read it. The same call succeeds shortly afterwards.
    pub(super) fn is_transient(&self) -> bool {
        let Self::Message(text) = self else { return false };
        let text = last_line(text);
        let is_lost_layer = ["failed to get digest", "unable to find image \"sha256:"];
        let is_unanswered =
            text.contains(" attach to network ") && text.contains("context deadline exceeded");
        let is_outdated = text.contains("update out of sequence");
        is_lost_layer.iter().any(|words| text.contains(words))
            || is_missing_network(&text)
            || is_unanswered
            || is_outdated
    }

    /// Returns whether a network that was to be used does not exist.
    pub(super) fn is_about_a_missing_network(&self) -> bool {
        let Self::Message(text) = self else { return false };
        let text = last_line(text);
        is_missing_network(&text) || text.to_lowercase().contains("no such network")
    }

    /// Returns whether another container of the network has the address that this one was to get.
    pub(super) fn is_address_taken(&self) -> bool {
        // The message for a port that is taken is in lower case.
        self.says(TAKEN_ADDRESS)
    }

    /// Returns whether the engine itself reported the error, so that it need not be pinged.
    pub(super) fn is_from_engine(&self) -> bool {
        let Self::Message(text) = self else {
            return !matches!(self, Self::Client(ProcessError::TookTooLong(..)));
        };
        let line = last_line(text).to_lowercase();
        // A step of a build also fails like this when the engine is stopped.
        let is_ambiguous =
            line.ends_with("eof") || line.contains("exit code") || line.contains("non-zero code");
        !is_ambiguous && meaning(&line) != Meaning::Unknown
    }

    /// Returns the reason why the engine does not answer, if that is the error.
    pub(super) fn unavailability(&self) -> Option<String> {
        match self {
            Self::Unavailable(why) => Some(why.clone()),
            Self::Message(text) if meaning(&last_line(text)) == Meaning::Unavailable => {
                Some(sentence(&last_line(text)))
            }
            _ => None,
        }
    }

    /// Converts to a step error that is a fault, unless docker clearly rejects the request.
    pub(super) fn or_fault(self) -> StepError {
        self.into_step(StepError::Retryable)
    }

    /// Converts to the error of a step that runs users' own programs, which may fail.
    pub(super) fn or_refused(self) -> StepError {
        self.into_step(StepError::Rejected)
    }

    fn into_step(self, unknown: fn(String) -> StepError) -> StepError {
        let unavailable =
            |why: &str| StepError::Unavailable(format!("the Docker engine does not answer: {why}"));
        let text = match self {
            Self::Client(error) => return StepError::Retryable(ErrorChain(&error).to_string()),
            Self::Unavailable(why) => return unavailable(&why),
            Self::Message(text) => last_line(&text),
        };
        match meaning(&text) {
            Meaning::Unavailable => unavailable(&sentence(&text)),
            Meaning::Fault | Meaning::Gone => StepError::Retryable(sentence(&text)),
            Meaning::Refusal => StepError::Rejected(sentence(&text)),
            Meaning::Unknown => unknown(sentence(&text)),
        }
    }
}

/// Returns whether a network does not exist, in the words of newer clients.
fn is_missing_network(line: &str) -> bool {
    line.split_once("network ").is_some_and(|(_, rest)| rest.trim_end().ends_with(" not found"))
}

fn meaning(text: &str) -> Meaning {
    let text = text.to_lowercase();
    let known = MEANINGS.iter().find(|(words, _)| text.contains(words));
    known.map_or(Meaning::Unknown, |(_, meaning)| *meaning)
}

/// Returns the line with the reason: the last one that is no advice. Earlier lines may be output of users'
/// programs, and must not decide anything.
fn last_line(text: &str) -> String {
    text.lines().rfind(|line| !is_advice(line)).unwrap_or_default().trim().to_owned()
}

fn is_advice(line: &str) -> bool {
    let line = line.trim();
    let advice = [
        "Run 'docker",
        "See 'docker",
        "Error: failed to start containers",
        "Error: failed to rename container",
        "Install the buildx component",
        "https://docs.docker.com/",
    ];
    line.is_empty() || advice.iter().any(|beginning| line.starts_with(beginning))
}

/// The longest error message that is shown to a user, in characters.
const LONGEST_SENTENCE: usize = 500;

/// Strips an error message of the parts that only developers of the engine need.
pub(super) fn sentence(text: &str) -> String {
    let mut text = text;
    for prefix in ["docker: ", "ERROR: ", "Error: ", "Error response from daemon: "] {
        text = text.strip_prefix(prefix).unwrap_or(text);
    }
    // The runtime's trace comes before the actual error.
    if let Some((_, reason)) = text.split_once("unable to start container process: ") {
        text = reason;
    }
    let text = text.strip_suffix(": unknown").unwrap_or(text).trim_end_matches('.');
    if text.is_empty() {
        return "docker failed without a word".to_owned();
    }
    text.chars().filter(|c| !c.is_control()).take(LONGEST_SENTENCE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine_failure(text: &str) -> EngineError {
        EngineError::Message(text.to_owned())
    }

    #[test]
    fn every_error_of_the_engine_is_a_fault_or_a_refusal() {
        let fault = |text: &str| StepError::Retryable(text.to_owned());
        let unavailable =
            |text: &str| StepError::Unavailable(format!("the Docker engine does not answer: {text}"));
        let refused = |text: &str| StepError::Rejected(text.to_owned());
        for (text, expected) in [
            (
                "Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?\n",
                unavailable(
                    "Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?",
                ),
            ),
            (
                "permission denied while trying to connect to the Docker daemon socket at unix:///x: Get \"/y\"",
                unavailable(
                    "permission denied while trying to connect to the Docker daemon socket at unix:///x: Get \"/y\"",
                ),
            ),
            (
                "error during connect: Post \"http://x/v1.41/build\": EOF",
                unavailable("error during connect: Post \"http://x/v1.41/build\": EOF"),
            ),
            (
                "request returned 500 Internal Server Error for API route and version http://x/v1.41, check",
                fault(
                    "request returned 500 Internal Server Error for API route and version http://x/v1.41, check",
                ),
            ),
            (
                "Error response from daemon: write /x: no space left on device",
                fault("write /x: no space left on device"),
            ),
            (
                "ERROR: BuildKit is enabled but the buildx component is missing or broken.\n       Install the buildx \
                 component to build images with BuildKit:\n       https://docs.docker.com/go/buildx/\n",
                fault("BuildKit is enabled but the buildx component is missing or broken"),
            ),
            (
                "Error response from daemon: failed to create shim task: OCI runtime create failed: runc \
                 create failed: unable to start container process: exec: \"nope\": executable file not found \
                 in $PATH: unknown\nError: failed to start containers: 0aa0fe0ac15a\n",
                refused("exec: \"nope\": executable file not found in $PATH"),
            ),
            (
                "Error response from daemon: No command specified\n\nRun 'docker create --help' for more",
                refused("No command specified"),
            ),
            (
                "docker: exec /app: exec format error.\nSee 'docker run --help'.",
                refused("exec /app: exec format error"),
            ),
            ("Error response from daemon: No such container: x", fault("No such container: x")),
            (
                "Error response from daemon: OCI runtime create failed: fork: resource temporarily unavailable",
                fault("OCI runtime create failed: fork: resource temporarily unavailable"),
            ),
            (
                "executor failed running [/bin/sh -c x]: failed to create endpoint y on network bridge",
                fault(
                    "executor failed running [/bin/sh -c x]: failed to create endpoint y on network bridge",
                ),
            ),
            ("Error response from daemon: something new", fault("something new")),
            ("", fault("docker failed without a word")),
        ] {
            assert_eq!(engine_failure(text).or_fault(), expected, "{text}");
        }
        let fails = "The command '/bin/sh -c false' returned a non-zero code: 1";
        assert_eq!(engine_failure(fails).or_refused(), refused(fails));
    }

    #[test]
    fn what_a_build_printed_decides_nothing() {
        for text in [
            "no space left on device\nThe command '/bin/sh -c x' returned a non-zero code: 1",
            "The command '/bin/sh -c echo no space left on device' returned a non-zero code: 1",
            "executor failed running [/bin/sh -c echo no such image]: exit code: 3",
            "dockerfile parse error line 1: unknown instruction: TOO MANY OPEN FILES",
        ] {
            assert!(matches!(engine_failure(text).or_refused(), StepError::Rejected(_)), "{text}");
        }
    }

    #[test]
    fn what_is_gone_is_known() {
        for text in ["Error: No such object: x", "Error response from daemon: No such image: x:y"] {
            assert!(engine_failure(text).is_gone(), "{text}");
        }
        assert!(!engine_failure("Cannot connect to the Docker daemon at x: no such container").is_gone());
        let gone = "Error: No such container: a";
        assert!(engine_failure(&format!("{gone}\n{gone}\n")).is_only_about_missing_objects());
        let busy = format!("Error response from daemon: device or resource busy\n{gone}");
        assert!(!engine_failure(&busy).is_only_about_missing_objects());
        assert!(!engine_failure("").is_only_about_missing_objects());
    }

    #[test]
    fn a_missing_client_is_a_fault() {
        let missing = EngineError::Client(ProcessError::NotInstalled("docker".to_owned()));
        assert_eq!(missing.or_refused(), StepError::Retryable("`docker` is not installed".to_owned()));
    }

    #[test]
    fn the_engine_is_asked_after_what_it_did_not_say_itself() {
        for silent in ["", "unexpected EOF", "something new", "The command 'x' returned a non-zero code: 137"]
        {
            assert!(!engine_failure(silent).is_from_engine(), "{silent}");
        }
        for told in
            ["Error: No such object: x", "write /x: no space left on device", "exec: \"x\": not found"]
        {
            assert!(engine_failure(told).is_from_engine(), "{told}");
        }
        let slow = ProcessError::TookTooLong("docker".to_owned(), std::time::Duration::from_secs(1));
        assert!(!EngineError::Client(slow).is_from_engine());
        assert!(EngineError::Client(ProcessError::NotInstalled("docker".to_owned())).is_from_engine());
        let unavailable = EngineError::Unavailable("connection refused".to_owned());
        let told = "the Docker engine does not answer: connection refused".to_owned();
        assert_eq!(unavailable.or_refused(), StepError::Unavailable(told));
    }

    #[test]
    fn a_taken_address_is_distinguished_from_a_taken_port() {
        assert!(
            engine_failure("docker: Error response from daemon: Address already in use.").is_address_taken()
        );
        let port = "Error response from daemon: driver failed: listen tcp4 127.0.0.1:80: bind: address already in use";
        assert!(!engine_failure(port).is_address_taken());
    }

    #[test]
    fn transient_errors_are_distinguished_from_permanent_ones() {
        let lapse = |text: &str| EngineError::Message(text.to_owned()).is_transient();
        let missing = format!("Error response from daemon: network {} not found", "a".repeat(64));
        assert!(lapse(&missing));
        assert!(lapse("failed to get digest sha256:0: open /x: no such file or directory"));
        assert!(!lapse("Error response from daemon: No such image: x"));
        assert!(lapse("Step 2/5 : RUN true\nunable to find image \"sha256:c23d7601ae27\""));
        assert!(lapse("Could not attach to network launchway-overlay-01a1f19a: context deadline exceeded"));
        assert!(!lapse("Could not attach to network launchway-overlay-01a1f19a: no address is left"));
        assert!(lapse("Error response from daemon: rpc error: code = Unknown desc = update out of sequence"));
        assert!(!lapse("unable to find image \"shop:latest\" locally"));
        assert!(!lapse("The command '/bin/sh -c exit 1' returned a non-zero code: 1"));
        assert!(EngineError::Message(missing).is_only_about_missing_objects());
    }
}
