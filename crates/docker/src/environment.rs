//! Passes users' variables to a container or a build, byte for byte.

use launchway_domain::{applications::Variables, deployments::StepError};

/// The longest line that the client's `--env-file` takes is 65,535 bytes; this leaves room.
const LONGEST_LINE: usize = 60_000;
/// The most bytes that the client may inherit. Linux allows a program two mebibytes in all.
const MOST_INHERITED: usize = 1024 * 1024;
/// The most bytes of a container's environment. The same limit applies to its first program.
const MOST_TOLD: usize = 1900 * 1024;

/// Variables that change the behaviour of the client, the dynamic linker or the C library, or of programs
/// that the client starts: a credential helper, which has the operator's credentials, is often a script,
/// and a shell executes `BASH_ENV`.
const OBEYED: &[&str] = &[
    "ALL_PROXY",
    "BAGGAGE",
    "BASHOPTS",
    "BASH_ENV",
    "CDPATH",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "ENV",
    "GCONV_PATH",
    "GETCONF_DIR",
    "GLOBIGNORE",
    "GNUPGHOME",
    "GOCOVERDIR",
    "GODEBUG",
    "GOFIPS",
    "GOFIPS140",
    "GOGC",
    "GOMAXPROCS",
    "GOMEMLIMIT",
    "GORACE",
    "GOROOT",
    "GOTRACEBACK",
    "GPG_AGENT_INFO",
    "HOME",
    "HOSTALIASES",
    "IFS",
    "LANG",
    "LANGUAGE",
    "LOCALDOMAIN",
    "LOCPATH",
    "LOGNAME",
    "NLSPATH",
    "NO_COLOR",
    "PATH",
    "POSIXLY_CORRECT",
    "PROMPT_COMMAND",
    "PS1",
    "PS2",
    "PS4",
    "PWD",
    "RES_OPTIONS",
    "SHELL",
    "SHELLOPTS",
    "SOURCE_DATE_EPOCH",
    "SSH_AUTH_SOCK",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "SUDO_ASKPASS",
    "TERM",
    "TMPDIR",
    "TRACEPARENT",
    "TRACESTATE",
    "TZ",
    "TZDIR",
    "USER",
    "ZONEINFO",
];
/// Prefixes of such names.
const OBEYED_BEGINNINGS: &[&str] = &[
    "BUILDKIT_",
    "BUILDX_",
    "CONTAINERD_",
    "DOCKER_",
    "EXPERIMENTAL_BUILDKIT_",
    "GLIBC_",
    "GRPC_",
    "LC_",
    "LD_",
    "MALLOC_",
    "MOBY_",
    "NOTARY_",
    "OTEL_",
    "XDG_",
];
/// Prefixes of names that affect the credential helpers of a build.
const OBEYED_BY_HELPERS: &[&str] = &[
    "AWS_",
    "AZURE_",
    "CLOUDSDK_",
    "GIT_",
    "GOOGLE_",
    "LUA_",
    "NODE_",
    "PASSWORD_STORE_",
    "PERL",
    "PYTHON",
    "RUBY",
    "SSH_",
];

/// Returns whether a variable of this name affects the docker client or the programs that start it.
pub(crate) fn is_obeyed(name: &str) -> bool {
    OBEYED.contains(&name)
        || OBEYED_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || name.to_ascii_uppercase().ends_with("_PROXY")
}

/// Returns whether a variable of this name affects the programs that the client starts for a build.
fn is_obeyed_in_a_build(name: &str) -> bool {
    is_obeyed(name) || OBEYED_BY_HELPERS.iter().any(|beginning| name.starts_with(beginning))
}

/// The environment of a container, passed in two ways that no command line shows.
#[derive(Debug, Default)]
pub(super) struct ContainerEnvironment {
    /// `NAME=value` lines, which the client reads from standard input.
    pub(super) file: Vec<u8>,
    /// Names and values that such a line cannot contain: the client inherits them.
    pub(super) inherited: Vec<(String, String)>,
}

impl ContainerEnvironment {
    /// Chooses the way of each variable.
    pub(super) fn of(variables: &Variables) -> Result<Self, StepError> {
        let mut environment = Self::default();
        let (mut inherited, mut told) = (0, 0);
        for (name, value) in variables.iter() {
            let length = name.len() + 1 + value.len();
            told += length + 1 + size_of::<usize>();
            if length <= LONGEST_LINE && !value.contains(['\n', '\r']) {
                environment.file.extend_from_slice(format!("{name}={value}\n").as_bytes());
                continue;
            }
            if is_obeyed(name) {
                return Err(StepError::Rejected(format!(
                    "the variable `{name}` must not have line breaks or more than {LONGEST_LINE} bytes: \
                     the docker command itself would use it"
                )));
            }
            inherited += length;
            environment.inherited.push((name.to_owned(), value.to_owned()));
        }
        if inherited > MOST_INHERITED {
            return Err(StepError::Rejected(format!(
                "the variables with line breaks or more than {LONGEST_LINE} bytes must have at most \
                 {MOST_INHERITED} bytes together, got {inherited}"
            )));
        }
        if told > MOST_TOLD {
            return Err(StepError::Rejected(format!(
                "the variables must have at most {MOST_TOLD} bytes together, got {told}: no program can be \
                 started with more"
            )));
        }
        Ok(environment)
    }
}

/// The arguments of a build.
///
/// They are no secrets, because an image keeps them in its history. Still, the client inherits them, so
/// that no command line shows them; but a variable such as `HTTP_PROXY`, `PATH` or `LD_PRELOAD` would
/// affect docker itself, and is passed in the command line instead.
#[derive(Debug, Default)]
pub(super) struct BuildArguments {
    /// The values of `--build-arg`: `NAME` or `NAME=value`.
    pub(super) options: Vec<String>,
    /// Names and values that the client inherits.
    pub(super) inherited: Vec<(String, String)>,
}

impl BuildArguments {
    /// Chooses the way of each variable.
    pub(super) fn of(variables: &Variables) -> Result<Self, StepError> {
        let mut arguments = Self::default();
        let mut length = 0;
        for (name, value) in variables.iter() {
            length += 2 * name.len() + value.len();
            if is_obeyed_in_a_build(name) {
                arguments.options.push(format!("{name}={value}"));
            } else {
                arguments.options.push(name.to_owned());
                arguments.inherited.push((name.to_owned(), value.to_owned()));
            }
        }
        if length > MOST_INHERITED {
            return Err(StepError::Rejected(format!(
                "the build variables must have at most {MOST_INHERITED} bytes together, got {length}"
            )));
        }
        Ok(arguments)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        let owned = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        owned.collect::<BTreeMap<_, _>>().try_into().unwrap()
    }

    #[test]
    fn lines_are_in_the_file_and_the_rest_is_inherited() {
        let long = "x".repeat(65_536);
        let all =
            variables(&[("A", " a=b "), ("PATH", "/x"), ("PEM", "a\nb"), ("CR", "a\r"), ("LONG", &long)]);
        let environment = ContainerEnvironment::of(&all).unwrap();
        assert_eq!(environment.file, b"A= a=b \nPATH=/x\n");
        let names: Vec<_> = environment.inherited.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["CR", "LONG", "PEM"]);
    }

    #[test]
    fn what_docker_would_obey_is_never_inherited() {
        for name in ["PATH", "LD_PRELOAD", "DOCKER_HOST", "GODEBUG", "https_proxy", "LC_ALL", "TMPDIR"] {
            let refused =
                ContainerEnvironment::of(&variables(&[(name, "hunter2\n")])).unwrap_err().to_string();
            assert!(refused.contains(&format!("`{name}`")) && !refused.contains("hunter2"), "{refused}");
            let arguments = BuildArguments::of(&variables(&[(name, "v")])).unwrap();
            assert_eq!((arguments.options, arguments.inherited), (vec![format!("{name}=v")], vec![]));
        }
        for name in ["BASH_ENV", "ENV", "SHELLOPTS", "PS4"] {
            assert!(ContainerEnvironment::of(&variables(&[(name, "a\nb")])).is_err(), "{name}");
        }
        for name in ["BASH_ENV", "PS4", "PERL5OPT", "PYTHONPATH", "AWS_CONFIG_FILE", "GOOGLE_CREDENTIALS"] {
            assert_eq!(BuildArguments::of(&variables(&[(name, "v")])).unwrap().inherited, [], "{name}");
        }
        for name in ["GOOGLE_CREDENTIALS", "DATABASE_URL", "LDAP", "PATHS"] {
            assert_eq!(ContainerEnvironment::of(&variables(&[(name, "a\nb")])).unwrap().inherited.len(), 1);
        }
    }

    #[test]
    fn more_than_a_program_can_be_started_with_is_refused() {
        let many = |count: usize, value: &str| -> Variables {
            let pairs = (0..count).map(|number| (format!("V{number}"), value.to_owned()));
            pairs.collect::<BTreeMap<_, _>>().try_into().unwrap()
        };
        let long = "x".repeat(60_000 - 4);
        assert!(ContainerEnvironment::of(&many(512, "small")).is_ok());
        assert!(ContainerEnvironment::of(&many(32, &long)).is_ok());
        assert!(matches!(ContainerEnvironment::of(&many(33, &long)), Err(StepError::Rejected(_))));
        let broken = format!("{long}\n");
        assert!(ContainerEnvironment::of(&many(17, &broken)).is_ok());
        assert!(matches!(ContainerEnvironment::of(&many(18, &broken)), Err(StepError::Rejected(_))));
        assert!(matches!(BuildArguments::of(&many(18, &broken)), Err(StepError::Rejected(_))));
    }

    proptest! {
        #[test]
        fn no_value_adds_a_line_of_its_own(value in "[a\n\r=#\u{1f680} -]{0,40}", name in "[A-Z_]{1,8}") {
            if let Ok(environment) = ContainerEnvironment::of(&variables(&[(&name, &value)])) {
                let lines = environment.file.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
                prop_assert_eq!(lines.count() + environment.inherited.len(), 1);
            }
        }
    }
}
