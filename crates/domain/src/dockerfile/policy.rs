//! The rules for Dockerfiles of tenants.
//!
//! A build gets an image by its name in a registry only. The engine accepts a prefix of an id as well, and
//! it has the images of every organization. A build fetches no file by a URL: the engine would do that from
//! the host's own network.

use std::collections::HashSet;

use super::{
    Dockerfile, Instruction, MAX_LINE_LENGTH, Rejection, Stage, Transfer, arguments::Arguments, excerpt,
    parse::is_stage_name, sources::uncertain,
};
use crate::applications::{ImageRef, Variables};

/// The maximum number of images that a Dockerfile may name.
const MAX_IMAGES: usize = 50;
/// The maximum number of stages of a Dockerfile.
const MAX_STAGES: usize = 200;

/// The builder that gets the Dockerfile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DockerfileBuilder {
    /// The engine's first builder, which knows few options.
    Legacy,
    /// BuildKit inside the engine.
    BuildKit,
}

/// The rules of one build.
#[derive(Debug, Clone, Copy)]
pub struct Policy<'a> {
    /// The build arguments.
    pub variables: &'a Variables,
    /// The builder that gets the result.
    pub builder: DockerfileBuilder,
    /// The prefix of cache mounts, unique to the tenant's builds.
    pub cache_scope: &'a str,
}

/// A Dockerfile that may be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedDockerfile {
    dockerfile: Dockerfile,
    images: Vec<BaseImage>,
}

/// A use of an image that the Dockerfile does not build itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseImage {
    /// The name.
    pub image: ImageRef,
    /// The line of the instruction.
    pub line: usize,
    /// The names of the stages before the one that begins with this image, empty for unnamed ones; `None`
    /// if files are copied from it, so that its triggers do not run.
    pub earlier_stages: Option<Vec<String>>,
    /// The platform that `FROM --platform` names.
    pub platform: Option<String>,
    /// The index of the instruction.
    statement: usize,
}

impl Policy<'_> {
    /// Checks a file, and rewrites what is safe only in another form: images get the names that their
    /// variables expand to, sources of `ADD` become local paths, cache mounts get the prefix.
    ///
    /// # Errors
    ///
    /// For a file that breaks a rule, with the line.
    pub fn check(&self, mut dockerfile: Dockerfile) -> Result<CheckedDockerfile, Rejection> {
        if self.variables.iter().any(|(name, _)| name == "BUILDKIT_SYNTAX") {
            let reason = "the build variable `BUILDKIT_SYNTAX` cannot be used: it chooses another frontend";
            return Err(Rejection { line: 1, reason: reason.to_owned() });
        }
        let mut checker = Checker::new(self, false);
        for (index, statement) in dockerfile.statements.iter_mut().enumerate() {
            let reject = Rejection::at(statement.line);
            checker.place = (statement.line, index);
            checker.instruction(&mut statement.instruction).map_err(&reject)?;
            if statement.instruction.render().len() > MAX_LINE_LENGTH {
                return Err(reject(format!(
                    "the instruction has more than {MAX_LINE_LENGTH} bytes: move it to a script of the repository"
                )));
            }
        }
        if checker.current.is_none() {
            return Err(Rejection { line: 1, reason: "the Dockerfile has no `FROM`".to_owned() });
        }
        Ok(CheckedDockerfile { dockerfile, images: checker.images })
    }
}

impl CheckedDockerfile {
    /// Returns the images that the build needs, in the order of the file.
    #[must_use]
    pub fn images(&self) -> &[BaseImage] {
        &self.images
    }

    /// Returns the tree.
    #[must_use]
    pub fn tree(&self) -> &Dockerfile {
        &self.dockerfile
    }

    /// Returns the text for the engine.
    #[must_use]
    pub fn render(&self) -> String {
        self.dockerfile.render()
    }

    /// Replaces the names of images by ids, so that retagging an image meanwhile has no effect.
    pub fn pin(&mut self, id_of: impl Fn(&ImageRef) -> Option<String>) {
        for base in &self.images {
            let statement = self.dockerfile.statements.get_mut(base.statement);
            match (id_of(&base.image), statement.map(|statement| &mut statement.instruction)) {
                (Some(id), Some(Instruction::From(stage))) => stage.image = id,
                (Some(id), Some(Instruction::Copy(transfer))) => {
                    let from = transfer.flags.iter_mut().find(|flag| flag.name == "from");
                    if let Some(flag) = from {
                        flag.value = Some(id);
                    }
                }
                _ => {}
            }
        }
    }
}

/// The state of a check.
pub(super) struct Checker<'a> {
    pub(super) policy: &'a Policy<'a>,
    /// The instruction cannot be rewritten: it is a trigger of a base image.
    pub(super) is_trigger: bool,
    /// Stages that are complete; empty names for those without.
    pub(super) complete: Vec<String>,
    pub(super) images: Vec<BaseImage>,
    /// The different names of images.
    names: HashSet<String>,
    arguments: Arguments<'a>,
    /// The name of the stage that is being built.
    current: Option<String>,
    /// The line and the index of the instruction.
    place: (usize, usize),
}

impl<'a> Checker<'a> {
    pub(super) fn new(policy: &'a Policy<'a>, is_trigger: bool) -> Self {
        Self {
            policy,
            is_trigger,
            complete: Vec::new(),
            images: Vec::new(),
            names: HashSet::new(),
            arguments: Arguments::given(policy.variables),
            current: None,
            place: (1, 0),
        }
    }

    pub(super) fn instruction(&mut self, instruction: &mut Instruction) -> Result<(), String> {
        let is_before_first_stage = self.current.is_none() && !self.is_trigger;
        match instruction {
            Instruction::Arg(words) if is_before_first_stage => self.arguments.declare(words),
            Instruction::From(stage) => self.stage(stage)?,
            _ if is_before_first_stage => {
                return Err("the first instruction has to be `FROM`; only `ARG` may precede it".to_owned());
            }
            Instruction::Onbuild(inner) => self.instruction(inner)?,
            Instruction::Copy(Transfer { flags, .. }) => self.copy_flags(flags)?,
            Instruction::Add(transfer) => self.add(transfer)?,
            Instruction::Run { flags, .. } => self.run_flags(flags)?,
            _ => {}
        }
        Ok(())
    }

    fn stage(&mut self, stage: &mut Stage) -> Result<(), String> {
        self.complete.extend(self.current.take());
        if self.complete.len() >= MAX_STAGES {
            return Err(format!("the Dockerfile has more than {MAX_STAGES} stages"));
        }
        stage.platform = match stage.platform.take() {
            Some(platform) if self.arguments.is_native_platform(&platform) => None,
            Some(platform) => Some(self.platform(&platform)?),
            None => None,
        };
        let image = self.arguments.expand(&stage.image).ok_or_else(|| uncertain(&stage.image))?;
        if self.is_complete(&image) {
            stage.image = image.to_ascii_lowercase();
        } else if image == "scratch" {
            stage.image = image;
        } else {
            let reference = image_name(&image)?;
            stage.image = reference.as_str().to_owned();
            self.uses(reference, Some(self.complete.clone()), stage.platform.clone())?;
        }
        self.current = Some(stage.name.clone().unwrap_or_default());
        Ok(())
    }

    fn platform(&self, written: &str) -> Result<String, String> {
        let platform = self.arguments.expand(written).ok_or_else(|| uncertain(written))?;
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"/._-".contains(&byte);
        if platform.is_empty() || !platform.bytes().all(is_plain) {
            return Err(format!("`{}` is not a platform, such as `linux/amd64`", excerpt(&platform)));
        }
        Ok(platform)
    }

    /// Records an image that the build needs.
    pub(super) fn uses(
        &mut self,
        image: ImageRef,
        earlier_stages: Option<Vec<String>>,
        platform: Option<String>,
    ) -> Result<(), String> {
        let (line, statement) = self.place;
        self.names.insert(image.as_str().to_owned());
        self.images.push(BaseImage { image, line, earlier_stages, platform, statement });
        if self.names.len() > MAX_IMAGES {
            return Err(format!("the Dockerfile names more than {MAX_IMAGES} images"));
        }
        Ok(())
    }

    pub(super) fn is_complete(&self, stage: &str) -> bool {
        is_stage_name(stage) && self.complete.contains(&stage.to_ascii_lowercase())
    }
}

/// Parses the name of an image. It must not be a possible prefix of an id.
pub(super) fn image_name(written: &str) -> Result<ImageRef, String> {
    let shown = excerpt(written);
    if !written.is_empty() && written.len() <= 64 && written.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(format!(
            "`{shown}` could be the beginning of an image's id: name the image by its repository, such as \
             `docker.io/library/…`"
        ));
    }
    let is_id = written.to_ascii_lowercase().starts_with("sha256:");
    match written.parse::<ImageRef>() {
        Ok(image) if !is_id && image.as_str() == written => Ok(image),
        _ => Err(format!("`{shown}` is not a name of an image")),
    }
}
