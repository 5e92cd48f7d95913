//! The source of a service's image.

use launchway_domain::{
    applications::{BasePath, DockerfilePath, ImageRef},
    deployments::StepError,
    yaml::{Content, Node},
};

use super::fields::{self, Fields};

/// The source of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ImageSource {
    /// It is built, optionally with a name for other services.
    Build(Build, Option<String>),
    /// It comes from a registry, or another service builds it.
    Image(ImageRef),
}

/// The build of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Build {
    /// The context folder as written: relative to that of the compose file.
    context: String,
    pub(super) dockerfile: DockerfilePath,
    /// Arguments without a value get that of the application's build variable.
    pub(super) arguments: Vec<(String, Option<String>)>,
    pub(super) target: Option<String>,
}

impl ImageSource {
    pub(super) fn take(fields: &mut Fields<'_>) -> Result<Self, String> {
        let place = fields.place().to_owned();
        let image = fields.take_as("image", fields::text)?;
        let build = fields.take_as("build", Build::read)?;
        match (build, image) {
            (Some(build), image) => Ok(Self::Build(build, image)),
            (None, Some(image)) => {
                image.parse().map(Self::Image).map_err(|error| format!("`image` of {place} {error}"))
            }
            (None, None) => Err(format!("{place} needs `image` or `build`")),
        }
    }
}

impl Build {
    fn read(node: &Node, place: &str) -> Result<Self, String> {
        if let Content::Scalar { .. } = &node.content {
            let context = fields::text(node, place)?;
            let dockerfile = DockerfilePath::default();
            return Ok(Self { context, dockerfile, arguments: Vec::new(), target: None });
        }
        let mut fields = Fields::of(node, place)?;
        let context = fields.take_as("context", fields::text)?.unwrap_or_else(|| ".".to_owned());
        let dockerfile = fields.take_as("dockerfile", |node, place| {
            let text = fields::text(node, place)?;
            // A path of this machine must not be taken for one of the repository.
            if text.starts_with('/') {
                return Err(format!("{place} has to be a file below its `context`"));
            }
            text.parse().map_err(|error| format!("{place} {error}"))
        })?;
        let arguments = fields.take_as("args", fields::pairs)?.unwrap_or_default();
        if let Some((name, _)) = arguments.iter().find(|(name, _)| !is_name(name)) {
            return Err(format!("{place}: `{name}` is no name of a build argument"));
        }
        let target = fields.take_as("target", |node, place| {
            let text = fields::text(node, place)?;
            let is_stage = text.starts_with(|c: char| c.is_ascii_alphanumeric())
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
            if is_stage { Ok(text) } else { Err(format!("{place} is no name of a stage")) }
        })?;
        fields.finish()?;
        Ok(Self { context, dockerfile: dockerfile.unwrap_or_default(), arguments, target })
    }

    /// Returns the context folder in the repository, for a compose file in `folder`.
    pub(super) fn folder(&self, folder: &str) -> Result<BasePath, StepError> {
        let refused = || {
            StepError::Rejected(format!(
                "the folder `{}` to build from has to be in the repository",
                self.context.chars().filter(|c| !c.is_control()).take(100).collect::<String>()
            ))
        };
        let is_elsewhere = self.context.starts_with(['/', '~']) || self.context.contains([':', '\\']);
        if is_elsewhere {
            return Err(refused());
        }
        let mut parts: Vec<&str> = Vec::new();
        for part in folder.split('/').chain(self.context.split('/')) {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop().ok_or_else(refused)?),
                part => parts.push(part),
            }
        }
        parts.join("/").parse().map_err(|_not_a_folder| refused())
    }
}

/// Returns whether the name is valid for both a build argument of docker and a variable of an application.
fn is_name(name: &str) -> bool {
    let is_of_names = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.bytes().all(is_of_names)
}

#[cfg(test)]
mod tests {
    use launchway_domain::yaml::Aliases;

    use super::*;

    fn read(text: &str) -> Result<ImageSource, String> {
        let node = Node::read(text.as_bytes(), Aliases::Allowed).unwrap();
        ImageSource::take(&mut Fields::of(&node, "the service `web`").unwrap())
    }

    fn folder(context: &str, of: &str) -> Result<String, StepError> {
        let Ok(ImageSource::Build(build, _)) = read(&format!("build: {{context: '{context}'}}")) else {
            panic!("{context}")
        };
        build.folder(of).map(Into::into)
    }

    #[test]
    fn an_image_is_built_or_named() {
        let ImageSource::Build(build, name) = read("{build: ./app, image: mine}").unwrap() else { panic!() };
        assert_eq!((build.context.as_str(), name.as_deref()), ("./app", Some("mine")));
        let long = "build: {context: app, dockerfile: web.Dockerfile, args: [A=1, B], target: final}";
        let ImageSource::Build(build, None) = read(long).unwrap() else { panic!() };
        assert_eq!((build.dockerfile.as_str(), build.target.as_deref()), ("web.Dockerfile", Some("final")));
        assert_eq!(build.arguments, [("A".to_owned(), Some("1".to_owned())), ("B".to_owned(), None)]);
        assert!(matches!(read("image: nginx:1"), Ok(ImageSource::Image(_))));
        assert_eq!(read("{}").unwrap_err(), "the service `web` needs `image` or `build`");
    }

    #[test]
    fn builds_are_within_the_repository() {
        assert_eq!(folder(".", "").as_deref(), Ok("/"));
        assert_eq!(folder("../api", "apps/web").as_deref(), Ok("/apps/api"));
        for context in
            ["..", "../../x", "/etc", "~/x", "https://example.com/x.git", "git@host:x", "a/../../x"]
        {
            assert!(folder(context, "").is_err(), "{context}");
        }
        for build in [
            "{dockerfile: ../Dockerfile}",
            "{dockerfile: /etc/passwd}",
            "{dockerfile_inline: FROM x}",
            "{network: host}",
            "{ssh: default}",
            "{secrets: [x]}",
            "{additional_contexts: {x: /}}",
            "{privileged: true}",
            "{extra_hosts: [a:1]}",
            "{target: --output=x}",
            "{args: [--x=1]}",
            "{cache_from: [x]}",
        ] {
            assert!(read(&format!("build: {build}")).is_err(), "{build}");
        }
    }
}
