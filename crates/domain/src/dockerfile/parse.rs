//! Parses Dockerfiles.

use super::{
    Command, Dockerfile, Escape, Flag, Healthcheck, Instruction, Pairs, Paths, Rejection, Stage, Statement,
    Transfer, excerpt,
    json::{Array, array},
    lines::logical_lines,
    words::{Options, SPACES, heredoc, options, quoted_words, split},
};

impl Dockerfile {
    /// Parses a file.
    ///
    /// # Errors
    ///
    /// For everything that is not known, with its line.
    pub fn parse(bytes: &[u8]) -> Result<Self, Rejection> {
        let (escape, lines) = logical_lines(bytes)?;
        let mut statements = Vec::new();
        for line in lines {
            let (instruction, _) = instruction(&line.text, escape).map_err(Rejection::at(line.number))?;
            statements.push(Statement { line: line.number, instruction });
        }
        Ok(Self { escape, statements })
    }
}

/// Parses one line; returns also whether its options have quotes.
pub(super) fn instruction(line: &str, escape: Escape) -> Result<(Instruction, bool), String> {
    let (name, rest) = line.split_once(SPACES).unwrap_or((line, ""));
    let name = name.to_ascii_uppercase();
    if name == "ONBUILD" {
        let (inner, has_quotes) = instruction(rest.trim_matches(SPACES), escape)?;
        return match inner {
            Instruction::Onbuild(_) | Instruction::From(_) | Instruction::Maintainer(_) => {
                Err("`ONBUILD` may not contain `ONBUILD`, `FROM` or `MAINTAINER`".to_owned())
            }
            inner => Ok((Instruction::Onbuild(Box::new(inner)), has_quotes)),
        };
    }
    if !NAMES.contains(&name.as_str()) {
        return Err(format!("unknown instruction `{}`", excerpt(&name)));
    }
    let Options { flags, rest, has_quotes } = options(rest)?;
    let rest = rest.trim_end_matches(SPACES);
    if rest.is_empty() {
        return Err(format!("`{name}` needs an argument"));
    }
    if matches!(name.as_str(), "RUN" | "COPY" | "ADD")
        && !matches!(array(rest), Array::Texts(_))
        && let Some(word) = heredoc(rest)
    {
        return Err(format!(
            "the here-document `{}` is not supported: join the commands by `&&`, or copy a file",
            excerpt(word)
        ));
    }
    let takes_flags = matches!(name.as_str(), "ADD" | "COPY" | "FROM" | "HEALTHCHECK" | "RUN");
    if let Some(flag) = flags.first().filter(|_| !takes_flags) {
        return Err(unknown_option(&name, flag));
    }
    let parsed = match name.as_str() {
        "ADD" => Instruction::Add(transfer(&name, flags, rest)?),
        "ARG" => Instruction::Arg(arguments(rest, escape)?),
        "CMD" => Instruction::Cmd(command(rest)?),
        "COPY" => Instruction::Copy(transfer(&name, flags, rest)?),
        "ENTRYPOINT" => Instruction::Entrypoint(command(rest)?),
        "ENV" => Instruction::Env(pairs(&name, rest, escape)?),
        "EXPOSE" => Instruction::Expose(split(rest)),
        "FROM" => Instruction::From(stage(&flags, rest)?),
        "HEALTHCHECK" => Instruction::Healthcheck(healthcheck(flags, rest)?),
        "LABEL" => Instruction::Label(pairs(&name, rest, escape)?),
        "MAINTAINER" => Instruction::Maintainer(rest.to_owned()),
        "RUN" => Instruction::Run { flags, command: command(rest)? },
        "SHELL" => match array(rest) {
            Array::Texts(words) if !words.is_empty() => Instruction::Shell(words),
            _ => return Err("`SHELL` takes a JSON array, such as `[\"/bin/sh\", \"-c\"]`".to_owned()),
        },
        "STOPSIGNAL" => Instruction::Stopsignal(rest.to_owned()),
        "USER" => Instruction::User(rest.to_owned()),
        "VOLUME" => Instruction::Volume(paths(rest)?),
        _ => Instruction::Workdir(rest.to_owned()),
    };
    Ok((parsed, has_quotes))
}

const NAMES: [&str; 17] = [
    "ADD",
    "ARG",
    "CMD",
    "COPY",
    "ENTRYPOINT",
    "ENV",
    "EXPOSE",
    "FROM",
    "HEALTHCHECK",
    "LABEL",
    "MAINTAINER",
    "RUN",
    "SHELL",
    "STOPSIGNAL",
    "USER",
    "VOLUME",
    "WORKDIR",
];

pub(super) fn unknown_option(name: &str, flag: &Flag) -> String {
    format!("`{name}` does not take the option `--{}`", excerpt(&flag.name))
}

fn ambiguous(text: &str) -> String {
    format!(
        "`{}` begins with a JSON array, but is not an array of texts: versions of the engine read it \
         differently (in a shell, `test …` does the same as `[ … ]`)",
        excerpt(text)
    )
}

fn command(rest: &str) -> Result<Command, String> {
    match array(rest) {
        Array::Texts(words) => Ok(Command::Exec(words)),
        Array::NotJson => Ok(Command::Shell(rest.to_owned())),
        Array::Ambiguous => Err(ambiguous(rest)),
    }
}

fn paths(rest: &str) -> Result<Paths, String> {
    match array(rest) {
        Array::Texts(paths) => Ok(Paths::Json(paths)),
        Array::NotJson => Ok(Paths::Words(split(rest))),
        Array::Ambiguous => Err(ambiguous(rest)),
    }
}

fn transfer(name: &str, flags: Vec<Flag>, rest: &str) -> Result<Transfer, String> {
    let paths = paths(rest)?;
    if paths.as_slice().len() < 2 {
        return Err(format!("`{name}` needs at least one source, and a destination"));
    }
    Ok(Transfer { flags, paths })
}

fn arguments(rest: &str, escape: Escape) -> Result<Vec<String>, String> {
    let words = quoted_words(rest, escape.as_char());
    match words.iter().find(|word| word.starts_with('=')) {
        Some(word) => Err(format!("the argument `{}` has no name", excerpt(word))),
        None => Ok(words),
    }
}

fn pairs(instruction: &str, rest: &str, escape: Escape) -> Result<Pairs, String> {
    let words = quoted_words(rest, escape.as_char());
    if words.first().is_none_or(|first| !first.contains('=')) {
        let (name, value) = rest
            .split_once(SPACES)
            .ok_or_else(|| format!("`{instruction}` needs a name and a value: `name=value`"))?;
        return Ok(Pairs::Single {
            name: name.to_owned(),
            value: value.trim_start_matches(SPACES).to_owned(),
        });
    }
    let pair = |word: String| match word.split_once('=') {
        Some(("", _)) => Err(format!("`{}` has no name before `=`", excerpt(&word))),
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => Err(format!("`{}` has no `=`: {instruction} takes `name=value`", excerpt(&word))),
    };
    words.into_iter().map(pair).collect::<Result<_, _>>().map(Pairs::List)
}

fn stage(flags: &[Flag], rest: &str) -> Result<Stage, String> {
    let platform = match flags {
        [] => None,
        [Flag { name, value: Some(value) }] if name == "platform" && !value.is_empty() => Some(value.clone()),
        [flag, ..] => return Err(unknown_option("FROM", flag)),
    };
    let words = split(rest);
    let (image, name) = match words.as_slice() {
        [image] => (image, None),
        [image, word, name] if word.eq_ignore_ascii_case("as") => (image, Some(name)),
        _ => return Err("`FROM` takes an image, and `AS` with a name".to_owned()),
    };
    if let Some(name) = name.filter(|name| !is_stage_name(name)) {
        return Err(format!("`{}` is not a name of a stage", excerpt(name)));
    }
    Ok(Stage { platform, image: image.clone(), name: name.map(|name| name.to_ascii_lowercase()) })
}

/// Returns whether the engine accepts this as the name of a stage.
pub(super) fn is_stage_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

fn healthcheck(flags: Vec<Flag>, rest: &str) -> Result<Healthcheck, String> {
    const FLAGS: [&str; 5] = ["interval", "timeout", "start-period", "start-interval", "retries"];
    if let Some(flag) = flags.iter().find(|flag| !FLAGS.contains(&flag.name.as_str())) {
        return Err(unknown_option("HEALTHCHECK", flag));
    }
    let (kind, text) = rest.split_once(SPACES).unwrap_or((rest, ""));
    let text = text.trim_start_matches(SPACES);
    match (kind.to_ascii_uppercase().as_str(), text) {
        ("NONE", "") if flags.is_empty() => Ok(Healthcheck::Disabled),
        ("CMD", text) if !text.is_empty() => Ok(Healthcheck::Command { flags, command: command(text)? }),
        _ => Err("`HEALTHCHECK` takes `NONE`, or options and `CMD` with a command".to_owned()),
    }
}
