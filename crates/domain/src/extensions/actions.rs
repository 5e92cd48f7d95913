//! The actions of steps, after every placeholder in their properties was replaced.

use super::{AccountName, ContainerSpec, ObjectName, UnitName, WorkspacePath};
use crate::applications::{Hostname, ImageRef, Port};

/// The action of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Runs a script in a shell of this machine, in the workspace.
    Command {
        /// The script. It contains no value, only references to environment variables.
        run: String,
        /// The script that reverts it.
        revert: Option<String>,
    },
    /// Changes files of the workspace.
    File(FileAction),
    /// Changes containers of the organization.
    Docker(DockerAction),
    /// Changes compositions of the organization.
    Compose(ComposeAction),
    /// Controls a service of this machine.
    Service {
        /// The unit.
        unit: UnitName,
        /// The operation.
        verb: ServiceVerb,
    },
    /// Changes users of this machine.
    User(UserAction),
    /// Changes the host names that are routed to containers of the organization.
    Proxy(ProxyAction),
}

/// A change to files of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileAction {
    /// Creates a folder and its parents.
    MakeFolder(WorkspacePath),
    /// Writes a file.
    Write {
        /// The path of the file.
        dest: WorkspacePath,
        /// The content of the file.
        content: String,
    },
    /// Copies a file or a folder.
    Copy {
        /// The source path.
        src: WorkspacePath,
        /// The destination path.
        dest: WorkspacePath,
    },
    /// Moves a file or a folder.
    Move {
        /// The source path.
        src: WorkspacePath,
        /// The destination path.
        dest: WorkspacePath,
    },
    /// Deletes a file or a folder, if it exists.
    Delete(WorkspacePath),
}

/// A change to containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DockerAction {
    /// Pulls an image.
    Pull(ImageRef),
    /// Runs a container.
    Run(Box<ContainerSpec>),
    /// Starts a stopped one of this organization and extension.
    Start(ObjectName),
    /// Stops one of this organization and extension.
    Stop(ObjectName),
    /// Removes one of this organization and extension, if it exists. Its volumes are kept.
    Remove(ObjectName),
}

/// A change to compositions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComposeAction {
    /// Runs the services of a compose file.
    Up {
        /// The name of the composition.
        project: ObjectName,
        /// The file.
        file: ComposeText,
    },
    /// Stops and removes a composition of this organization and extension. Its volumes are kept.
    Down {
        /// The name of the composition.
        project: ObjectName,
    },
}

/// A compose file. It refers to values by `${name}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComposeText {
    /// The text in the definition.
    Inline(String),
    /// A file in the workspace.
    InWorkspace(WorkspacePath),
}

/// An operation on a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceVerb {
    /// Starts it.
    Start,
    /// Stops it.
    Stop,
    /// Restarts it, whether or not it runs.
    Restart,
    /// Reloads its configuration.
    Reload,
    /// Starts it at boot from now on.
    Enable,
    /// Does not start it at boot any more.
    Disable,
}

crate::value::parsed_by_name!(ServiceVerb, "the name of a `systemctl` command");

impl ServiceVerb {
    /// Every verb.
    pub const ALL: [Self; 6] =
        [Self::Start, Self::Stop, Self::Restart, Self::Reload, Self::Enable, Self::Disable];

    /// Returns the name in definitions, which is also that of the `systemctl` command.
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

    /// Returns the operation that reverts it, if there is one.
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
    /// Creates a user, unless it exists.
    Create {
        /// The name of the user.
        name: AccountName,
        /// The groups of the user, which exist.
        groups: Vec<AccountName>,
        /// True for a system user without a home folder.
        is_system: bool,
    },
    /// Removes a user. Their files are kept.
    Delete(AccountName),
    /// Adds a user to groups.
    AddGroups {
        /// The name of the user.
        name: AccountName,
        /// The groups.
        groups: Vec<AccountName>,
    },
    /// Removes a user from groups.
    RemoveGroups {
        /// The name of the user.
        name: AccountName,
        /// The groups.
        groups: Vec<AccountName>,
    },
}

/// A change to the routes of host names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyAction {
    /// Routes a host name to a container that this run created.
    Add {
        /// The host name.
        domain: Hostname,
        /// The name of the container.
        container: ObjectName,
        /// The port of the container.
        port: Port,
    },
    /// Removes a route of this extension.
    Remove {
        /// The host name.
        domain: Hostname,
    },
}
