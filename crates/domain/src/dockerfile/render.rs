//! The canonical text of a tree.

use std::fmt::Write as _;

use super::{
    Command, Dockerfile, Escape, Flag, Healthcheck, Instruction, Pairs, Paths, Transfer, json::write_array,
};

impl Dockerfile {
    /// Writes the file: one line for each instruction, without comments.
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = match self.escape {
            Escape::Backslash => String::new(),
            Escape::Backtick => "# escape=`\n".to_owned(),
        };
        for statement in &self.statements {
            text.push_str(&statement.instruction.render());
            text.push('\n');
        }
        text
    }
}

impl Instruction {
    /// Writes the instruction as one line.
    #[must_use]
    pub fn render(&self) -> String {
        match self {
            Self::Add(transfer) => format!("ADD {}", transfer.render()),
            Self::Arg(words) => format!("ARG {}", words.join(" ")),
            Self::Cmd(command) => format!("CMD {}", command.render()),
            Self::Copy(transfer) => format!("COPY {}", transfer.render()),
            Self::Entrypoint(command) => format!("ENTRYPOINT {}", command.render()),
            Self::Env(pairs) => format!("ENV {}", pairs.render()),
            Self::Expose(ports) => format!("EXPOSE {}", ports.join(" ")),
            Self::From(stage) => {
                let mut line = "FROM ".to_owned();
                if let Some(platform) = &stage.platform {
                    let _infallible = write!(line, "--platform={platform} ");
                }
                line.push_str(&stage.image);
                if let Some(name) = &stage.name {
                    let _infallible = write!(line, " AS {name}");
                }
                line
            }
            Self::Healthcheck(Healthcheck::Disabled) => "HEALTHCHECK NONE".to_owned(),
            Self::Healthcheck(Healthcheck::Command { flags, command }) => {
                format!("HEALTHCHECK {}CMD {}", render_flags(flags), command.render())
            }
            Self::Label(pairs) => format!("LABEL {}", pairs.render()),
            Self::Maintainer(text) => format!("MAINTAINER {text}"),
            Self::Onbuild(instruction) => format!("ONBUILD {}", instruction.render()),
            Self::Run { flags, command } => format!("RUN {}{}", render_flags(flags), command.render()),
            Self::Shell(words) => format!("SHELL {}", write_array(words)),
            Self::Stopsignal(text) => format!("STOPSIGNAL {text}"),
            Self::User(text) => format!("USER {text}"),
            Self::Volume(paths) => format!("VOLUME {}", paths.render()),
            Self::Workdir(text) => format!("WORKDIR {text}"),
        }
    }
}

impl Transfer {
    fn render(&self) -> String {
        format!("{}{}", render_flags(&self.flags), self.paths.render())
    }
}

impl Command {
    fn render(&self) -> String {
        match self {
            Self::Shell(text) => text.clone(),
            Self::Exec(words) => write_array(words),
        }
    }
}

impl Paths {
    fn render(&self) -> String {
        match self {
            Self::Words(paths) => paths.join(" "),
            Self::Json(paths) => write_array(paths),
        }
    }
}

impl Pairs {
    fn render(&self) -> String {
        match self {
            Self::Single { name, value } => format!("{name} {value}"),
            Self::List(pairs) => {
                let pairs: Vec<String> =
                    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
                pairs.join(" ")
            }
        }
    }
}

impl Flag {
    fn render(&self) -> String {
        match &self.value {
            Some(value) => format!("--{}={value}", self.name),
            None => format!("--{}", self.name),
        }
    }
}

fn render_flags(flags: &[Flag]) -> String {
    flags.iter().map(|flag| flag.render() + " ").collect()
}
