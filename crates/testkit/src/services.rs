//! The services that a test may use. The path of a test says it, because `cargo xtask test --quick` selects tests by
//! it: it leaves out every test with the word `postgres` or `docker` in its path, and the binaries of [`WITH_SERVICES`].
//!
//! **Invariant:** a test gets a PostgreSQL server or a Docker engine only if the quick form of the tests leaves it out.

use std::{env, path::Path};

/// The test binaries that the quick form leaves out as a whole.
const WITH_SERVICES: &[&str] = &["campaigns", "cli", "dashboard", "docker", "engine", "packaging"];
/// The words in the path of the tests that the quick form leaves out.
const WORDS: &[&str] = &["postgres", "docker"];
/// An address at which no engine listens.
const NO_ENGINE: &str = "unix:///var/empty/docker.sock";

/// Checks that the running test may use a service.
///
/// # Panics
///
/// If the quick form runs the test.
pub(crate) fn require(service: &str) {
    if let Some(test) = quick_test() {
        panic!("`{test}` uses {service}: put `{service}` into its name or the name of its module");
    }
}

/// Returns the `DOCKER_HOST` of servers in tests that the quick form runs: they have no engine.
pub(crate) fn hidden_engine() -> Option<&'static str> {
    quick_test().map(|_| NO_ENGINE)
}

/// Returns the test that this process runs, if the quick form runs it, too. Other programs than cargo-nextest run many
/// tests in one process, and get every service.
fn quick_test() -> Option<String> {
    let arguments: Vec<String> = env::args().collect();
    quick_test_of(arguments.iter().map(String::as_str))
}

fn quick_test_of<'a>(mut arguments: impl Iterator<Item = &'a str> + Clone) -> Option<String> {
    let program = Path::new(arguments.next()?).file_name()?.to_str()?;
    // Cargo appends a hash to the name of the binary.
    let binary = program.rsplit_once('-').map_or(program, |(name, _)| name);
    let is_alone = arguments.clone().any(|argument| argument == "--exact");
    let test = arguments.find(|argument| !argument.starts_with('-')).filter(|_| is_alone)?;
    let is_left_out = WITH_SERVICES.contains(&binary)
        || WORDS.iter().any(|word| test.split([':', '_']).any(|part| part == *word));
    (!is_left_out).then(|| test.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_quick(command: &str) -> bool {
        quick_test_of(command.split(' ')).is_some()
    }

    #[test]
    fn the_path_of_a_test_says_what_it_uses() {
        let of = |test: &str| is_quick(&format!("target/api-1f2e --exact {test} --nocapture"));
        assert!(of("users::on_sqlite::are_listed"));
        assert!(!of("users::on_postgres::are_listed"));
        assert!(!of("docker::builds::are_cached"));
        assert!(of("dockerfile::are_parsed"));
    }

    #[test]
    fn some_binaries_have_every_service() {
        assert!(!is_quick("target/engine-1f2e builds::are_cached --exact"));
    }

    #[test]
    fn a_process_of_many_tests_is_not_checked() {
        assert!(!is_quick("target/api-1f2e"));
        assert!(!is_quick("target/api-1f2e users"));
    }

    #[test]
    fn the_quick_form_leaves_out_what_uses_services() {
        let profiles = include_str!("../../../.config/nextest.toml");
        let (_, quick) = profiles.split_once("[profile.quick]").unwrap();
        for left_out in WITH_SERVICES.iter().map(|name| format!("binary({name})")) {
            assert!(quick.contains(&left_out), "{left_out}");
        }
        let words = format!("test(/(^|[:_])({})([:_]|$)/)", WORDS.join("|"));
        assert!(quick.contains(&words), "{words}");
    }
}
