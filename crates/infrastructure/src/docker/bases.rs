//! Which images a Dockerfile may be built from.
//!
//! **Invariant:** a build gets an image by its name in a registry only. The engine takes the beginning
//! of an id as well, and it knows the images of every organization by their id and by the name that
//! they have here. What a base tells whoever builds on it (`ONBUILD`) is held to the same.

mod inspect;
mod script;
#[cfg(test)]
mod tests;
mod words;

use launchway_domain::applications::{ImageRef, Variables};

use self::{
    script::{Instruction, Reading, Unread, is_space},
    words::{Arguments, Flag, flags},
};
use super::references;

/// How many different images a Dockerfile may name.
const MOST_BASES: usize = 50;
/// How many stages it may have.
const MOST_STAGES: usize = 200;
/// How often an instruction may stand in an `ONBUILD`.
const DEEPEST: usize = 3;

/// An image that is not made by the Dockerfile itself.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Base {
    /// As docker lists it.
    reference: String,
    /// The stages before the one that begins with it; none when only files are copied from it, for
    /// then it tells nothing.
    begins_after: Option<Vec<String>>,
    /// What `--platform` asks for.
    platform: Option<String>,
}

/// What a Dockerfile may name, and what it named.
struct Check<'a> {
    arguments: Arguments<'a>,
    /// The names of stages that are complete; empty ones for those without.
    complete: Vec<String>,
    /// The name of the stage that is being built.
    current: Option<String>,
    bases: Vec<Base>,
}

/// The images that a build of `text` needs, or why it may not be built.
fn bases_of(text: &str, variables: &Variables) -> Result<Vec<Base>, String> {
    check_syntax(text, variables)?;
    let mut bases = Vec::new();
    for instructions in readings(text)? {
        let mut check = Check::new(variables);
        for instruction in &instructions {
            check.instruction(instruction, 0)?;
        }
        bases.extend(check.bases);
    }
    limited(bases)
}

/// The images that are needed when `text` is run because a base says so.
fn bases_of_trigger(text: &str, earlier: &[String]) -> Result<Vec<Base>, String> {
    let mut bases = Vec::new();
    let variables = Variables::default();
    for instructions in readings(text)? {
        let mut check = Check { complete: earlier.to_vec(), ..Check::new(&variables) };
        for instruction in &instructions {
            check.instruction(instruction, 1)?;
        }
        bases.extend(check.bases);
    }
    limited(bases)
}

/// Every reading of which docker can make something.
fn readings(text: &str) -> Result<Vec<Vec<Instruction>>, String> {
    let mut sensible = Vec::new();
    let mut unknown = None;
    for reading in Reading::all() {
        match reading.instructions(text) {
            Ok(instructions) => sensible.push(instructions),
            Err(Unread::Nonsense(name)) => unknown = unknown.or(Some(name)),
            Err(Unread::Doubtful(sentence)) => return Err(sentence),
        }
    }
    match unknown {
        Some(name) if sensible.is_empty() => Err(format!("unknown instruction: {name}")),
        _ => Ok(sensible),
    }
}

fn limited(bases: Vec<Base>) -> Result<Vec<Base>, String> {
    let mut different: Vec<Base> = Vec::new();
    for base in bases {
        if !different.contains(&base) {
            different.push(base);
        }
        if different.len() > MOST_BASES {
            return Err(format!("the Dockerfile names more than {MOST_BASES} images"));
        }
    }
    Ok(different)
}

/// `# syntax=` has BuildKit run a program that reads the Dockerfile its own way; only docker's own
/// reads it as we do.
fn check_syntax(text: &str, variables: &Variables) -> Result<(), String> {
    let leading = text.trim_start_matches('\u{feff}').lines().map(str::trim);
    let leading = leading.take_while(|line| line.is_empty() || line.starts_with('#'));
    let told = leading.filter_map(|line| {
        let (key, value) = line.strip_prefix('#')?.split_once('=')?;
        key.trim().eq_ignore_ascii_case("syntax").then(|| value.trim())
    });
    let given = variables.iter().filter(|(name, _)| *name == "BUILDKIT_SYNTAX").map(|(_, value)| value);
    for syntax in told.chain(given) {
        let name = syntax.strip_prefix("docker.io/").unwrap_or(syntax);
        let is_dockers = syntax.parse::<ImageRef>().is_ok()
            && ["docker/dockerfile", "docker/dockerfile-upstream"].iter().any(|own| {
                name.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '@']))
            });
        if !is_dockers {
            return Err(format!("`{syntax}` may not read the Dockerfile: `docker/dockerfile` may"));
        }
    }
    Ok(())
}

impl<'a> Check<'a> {
    fn new(variables: &'a Variables) -> Self {
        Self {
            arguments: Arguments::given(variables),
            complete: Vec::new(),
            current: None,
            bases: Vec::new(),
        }
    }

    fn instruction(&mut self, instruction: &Instruction, depth: usize) -> Result<(), String> {
        let (flags, rest) = flags(&instruction.rest);
        let instruction_rest = instruction.rest.as_str();
        match instruction.name.as_str() {
            "arg" if self.current.is_none() => self.arguments.declare(instruction_rest),
            "from" if depth > 0 => return Err("`ONBUILD` may not begin a stage".to_owned()),
            "from" => self.stage(&flags, rest)?,
            "onbuild" if depth >= DEEPEST => return Err("`ONBUILD` stands in itself".to_owned()),
            "onbuild" => match Instruction::of(rest) {
                Ok(Some(inner)) => self.instruction(&inner, depth + 1)?,
                Ok(None) => {}
                Err(Unread::Nonsense(name)) => return Err(format!("unknown instruction: {name}")),
                Err(Unread::Doubtful(sentence)) => return Err(sentence),
            },
            "copy" | "add" | "run" => self.sources(&flags)?,
            _ => {}
        }
        Ok(())
    }

    /// `FROM`: the stage before it is complete.
    fn stage(&mut self, flags: &[Flag], rest: &str) -> Result<(), String> {
        self.complete.extend(self.current.take());
        if self.complete.len() >= MOST_STAGES {
            return Err(format!("the Dockerfile has more than {MOST_STAGES} stages"));
        }
        let mut words =
            rest.split(|c: char| is_space(c) || c.is_whitespace()).filter(|word| !word.is_empty());
        let written = words.next().unwrap_or_default();
        let name = match (words.next(), words.next()) {
            (Some(word), Some(name)) if word.eq_ignore_ascii_case("as") => name.to_lowercase(),
            _ => String::new(),
        };
        let platform = flags.iter().find_map(|flag| flag.text.strip_prefix("--platform="));
        let platform = match platform {
            Some(platform) if self.arguments.is_of_the_builder(platform) => None,
            Some(platform) => Some(self.arguments.expand(platform).ok_or_else(|| unclear(platform))?),
            None => None,
        };
        let image = self.arguments.expand(written).ok_or_else(|| unclear(written))?;
        if !self.is_complete(&image) && image != "scratch" {
            let reference = named(&image)?;
            self.bases.push(Base { reference, begins_after: Some(self.complete.clone()), platform });
        }
        self.current = Some(name);
        Ok(())
    }

    /// `--from=…`, and `--mount=…,from=…`.
    fn sources(&mut self, flags: &[Flag]) -> Result<(), String> {
        for flag in flags {
            if flag.is_odd && flag.text.to_lowercase().contains("from") {
                return Err(unclear(&flag.text));
            }
            let (option, value) = flag.text.split_once('=').unwrap_or((&flag.text, ""));
            match option {
                "--from" => self.source(value)?,
                "--mount" => {
                    for field in value.split(',') {
                        let (key, value) = field.split_once('=').unwrap_or((field, ""));
                        if key.contains('$') {
                            return Err(unclear(field));
                        }
                        if key.trim().eq_ignore_ascii_case("from") {
                            self.source(value)?;
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn source(&mut self, written: &str) -> Result<(), String> {
        // Docker expands nothing here. Should it ever, it would know more variables than we do.
        if written.contains(['$', '"', '\'', '\\', '`']) {
            return Err(unclear(written));
        }
        let is_index = written.len() <= 4
            && written
                .parse::<usize>()
                .is_ok_and(|index| index.to_string() == written && index < self.complete.len());
        if written.is_empty() || written == "scratch" || is_index || self.is_complete(written) {
            return Ok(());
        }
        let reference = named(written)?;
        self.bases.push(Base { reference, begins_after: None, platform: None });
        Ok(())
    }

    fn is_complete(&self, stage: &str) -> bool {
        // Docker takes no name that begins otherwise, and would look for an image.
        stage.starts_with(|c: char| c.is_ascii_alphabetic())
            && stage.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
            && self.complete.contains(&stage.to_lowercase())
    }
}

fn unclear(written: &str) -> String {
    let written: String = written.chars().filter(|c| !c.is_control()).take(200).collect();
    format!(
        "it is not certain which image `{written}` is: write its name, or declare its variables by `ARG` before the first `FROM`"
    )
}

/// The reference as docker lists it, if it is the name of an image that everybody may use.
fn named(image: &str) -> Result<String, String> {
    let told: String = image.chars().filter(|c| !c.is_control()).take(200).collect();
    if !image.is_empty() && image.len() <= 64 && image.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(format!(
            "`{told}` could be the beginning of an image's id: name the image by its repository, such as \
             `docker.io/library/…`"
        ));
    }
    let is_id = image.to_ascii_lowercase().starts_with("sha256:");
    match image.parse::<ImageRef>() {
        Ok(parsed) if !is_id && parsed.as_str() == image => {
            references::familiar(&parsed).ok_or_else(|| format!("there is no image `{told}`"))
        }
        _ => Err(format!("`{told}` is no name of an image")),
    }
}
