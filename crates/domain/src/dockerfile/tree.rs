//! The tree of a Dockerfile.

/// A parsed Dockerfile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dockerfile {
    /// The character that escapes others, in words and at the end of a line.
    pub escape: Escape,
    /// The instructions in their order.
    pub statements: Vec<Statement>,
}

/// The escape character of a Dockerfile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escape {
    /// `\`, the default.
    Backslash,
    /// A backtick, by `# escape=`.
    Backtick,
}

/// An instruction with its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The line in which it begins, counted from 1.
    pub line: usize,
    /// The instruction.
    pub instruction: Instruction,
}

/// An instruction. Words are kept as they were written, with quotes and variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Instruction {
    /// The `ADD` instruction.
    Add(Transfer),
    /// `ARG`: `name` or `name=value`, one or more.
    Arg(Vec<String>),
    /// The `CMD` instruction.
    Cmd(Command),
    /// The `COPY` instruction.
    Copy(Transfer),
    /// The `ENTRYPOINT` instruction.
    Entrypoint(Command),
    /// The `ENV` instruction.
    Env(Pairs),
    /// The `EXPOSE` instruction.
    Expose(Vec<String>),
    /// The `FROM` instruction.
    From(Stage),
    /// The `HEALTHCHECK` instruction.
    Healthcheck(Healthcheck),
    /// The `LABEL` instruction.
    Label(Pairs),
    /// The `MAINTAINER` instruction.
    Maintainer(String),
    /// `ONBUILD`: an instruction for builds on the image.
    Onbuild(Box<Instruction>),
    /// The `RUN` instruction.
    Run {
        /// `--mount`, `--network` and `--security`.
        flags: Vec<Flag>,
        /// The command.
        command: Command,
    },
    /// The `SHELL` instruction.
    Shell(Vec<String>),
    /// The `STOPSIGNAL` instruction.
    Stopsignal(String),
    /// The `USER` instruction.
    User(String),
    /// The `VOLUME` instruction.
    Volume(Paths),
    /// The `WORKDIR` instruction.
    Workdir(String),
}

/// An option of an instruction, `--name` or `--name=value`, of printable ASCII without quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// The name without `--`.
    pub name: String,
    /// The value; `None` without `=`.
    pub value: Option<String>,
}

/// The beginning of a build stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// The value of `--platform`.
    pub platform: Option<String>,
    /// An image, an earlier stage or `scratch`.
    pub image: String,
    /// The name behind `AS`, in lower case.
    pub name: Option<String>,
}

/// Files that are copied into the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// `--from`, `--chown` and the like.
    pub flags: Vec<Flag>,
    /// The sources and, last, the destination.
    pub paths: Paths,
}

/// A list of paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Paths {
    /// Words between spaces.
    Words(Vec<String>),
    /// A JSON array.
    Json(Vec<String>),
}

impl Paths {
    /// Returns the paths, as they were written.
    #[must_use]
    pub fn as_slice(&self) -> &[String] {
        match self {
            Self::Words(paths) | Self::Json(paths) => paths,
        }
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [String] {
        match self {
            Self::Words(paths) | Self::Json(paths) => paths,
        }
    }
}

/// A command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Text for the shell.
    Shell(String),
    /// A program and its arguments, as a JSON array.
    Exec(Vec<String>),
}

/// Names and values of `ENV` and `LABEL`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pairs {
    /// The old form, `name value`.
    Single {
        /// The name.
        name: String,
        /// The rest of the line.
        value: String,
    },
    /// `name=value`, one or more.
    List(Vec<(String, String)>),
}

/// A health check of the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Healthcheck {
    /// `NONE`: the check of the base image is switched off.
    Disabled,
    /// `CMD`: a command that checks the container.
    Command {
        /// `--interval`, `--timeout` and the like.
        flags: Vec<Flag>,
        /// The command.
        command: Command,
    },
}

impl Escape {
    /// Returns the character.
    #[must_use]
    pub fn as_char(self) -> char {
        match self {
            Self::Backslash => '\\',
            Self::Backtick => '`',
        }
    }
}
