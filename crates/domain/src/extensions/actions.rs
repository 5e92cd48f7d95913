//! What a step does, once every place in its properties is filled.

use super::{AccountName, ContainerSpec, ObjectName, UnitName, WorkspacePath};
use crate::applications::{Hostname, ImageRef, Port};

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Runs a text in a shell of this machine, in the workspace.
    Command {
        /// The text. It holds no value, only references to environment variables.
        run: String,
        /// What takes it back.
        revert: Option<String>,
    },
    /// Changes files of the workspace.
    File(FileAction),
    /// Changes containers of the organization.
    Docker(DockerAction),
    /// Changes compositions of the organization.
    Compose(ComposeAction),
    /// Tells a service of this machine to do something.
    Service {
        /// Which.
        unit: UnitName,
        /// What.
        verb: ServiceVerb,
    },
    /// Changes users of this machine.
    User(UserAction),
    /// Changes which names lead to containers of the organization.
    Proxy(ProxyAction),
}

/// A change to files of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileAction {
    /// Makes a folder, and those around it.
    MakeFolder(WorkspacePath),
    /// Writes a file.
    Write {
        /// Where.
        dest: WorkspacePath,
        /// What.
        content: String,
    },
    /// Copies a file or a folder.
    Copy {
        /// From where.
        src: WorkspacePath,
        /// To where.
        dest: WorkspacePath,
    },
    /// Moves a file or a folder.
    Move {
        /// From where.
        src: WorkspacePath,
        /// To where.
        dest: WorkspacePath,
    },
    /// Deletes a file or a folder. What is not there is deleted already.
    Delete(WorkspacePath),
}

/// A change to containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DockerAction {
    /// Gets an image.
    Pull(ImageRef),
    /// Runs a container.
    Run(Box<ContainerSpec>),
    /// Starts one of this organization and extension that stands still.
    Start(ObjectName),
    /// Stops one of this organization and extension.
    Stop(ObjectName),
    /// Removes one of this organization and extension. One that is not there is removed already. Its
    /// volumes stay.
    Remove(ObjectName),
}

/// A change to compositions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComposeAction {
    /// Runs the services of a compose file.
    Up {
        /// What the composition is called.
        project: ObjectName,
        /// The file.
        file: ComposeText,
    },
    /// Ends a composition of this organization and extension. Its volumes stay.
    Down {
        /// Which.
        project: ObjectName,
    },
}

/// A compose file. It refers to values by `${name}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComposeText {
    /// As it stands in the definition.
    Inline(String),
    /// As it lies in the workspace.
    InWorkspace(WorkspacePath),
}

/// What a service is told to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceVerb {
    /// Starts it.
    Start,
    /// Ends it.
    Stop,
    /// Starts it anew, whether or not it runs.
    Restart,
    /// Lets it read its settings again.
    Reload,
    /// Starts it with the machine from now on.
    Enable,
    /// Does not start it with the machine any more.
    Disable,
}

impl ServiceVerb {
    /// Every verb.
    pub const ALL: [Self; 6] =
        [Self::Start, Self::Stop, Self::Restart, Self::Reload, Self::Enable, Self::Disable];

    /// As a definition writes it, and as the machine is told.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Restart => "restart",
            Self::Reload => "reload",
            Self::Enable => "enable",
            Self::Disable => "disable",
        }
    }

    /// What takes it back, if anything does.
    #[must_use]
    pub fn opposite(self) -> Option<Self> {
        match self {
            Self::Start => Some(Self::Stop),
            Self::Stop => Some(Self::Start),
            Self::Enable => Some(Self::Disable),
            Self::Disable => Some(Self::Enable),
            Self::Restart | Self::Reload => None,
        }
    }
}

/// A change to users of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserAction {
    /// Makes a user, unless there is one.
    Create {
        /// Called so.
        name: AccountName,
        /// In these groups, which exist.
        groups: Vec<AccountName>,
        /// Whether it is one for a service, without a home.
        is_system: bool,
    },
    /// Removes a user. What is theirs stays.
    Delete(AccountName),
    /// Puts a user into groups.
    AddGroups {
        /// Whom.
        name: AccountName,
        /// Into which.
        groups: Vec<AccountName>,
    },
    /// Takes a user out of groups.
    RemoveGroups {
        /// Whom.
        name: AccountName,
        /// Out of which.
        groups: Vec<AccountName>,
    },
}

/// A change to which names lead where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyAction {
    /// Leads a name to a container that this run made.
    Add {
        /// Which name.
        domain: Hostname,
        /// To which container.
        container: ObjectName,
        /// To which port of it.
        port: Port,
    },
    /// Leads a name of this extension nowhere any more.
    Remove {
        /// Which name.
        domain: Hostname,
    },
}
