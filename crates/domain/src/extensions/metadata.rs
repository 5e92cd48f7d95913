//! The description of an extension in the catalog.

use super::ExtensionKey;
use crate::value::{named, plain_text, text_value};

named!(
    /// A category of extensions.
    Category,
    "one of Security, Containers, Database, Web Server, Maintenance, Monitoring, Storage, Network, Development, \
     Media, Game, Utility, Productivity, Social, Other",
    {
        Security => "Security",
        Containers => "Containers",
        Database => "Database",
        WebServer => "Web Server",
        Maintenance => "Maintenance",
        Monitoring => "Monitoring",
        Storage => "Storage",
        Network => "Network",
        Development => "Development",
        Media => "Media",
        Game => "Game",
        Utility => "Utility",
        Productivity => "Productivity",
        Social => "Social",
        Other => "Other",
    }
);

named!(
    /// The kind of an extension: installs something, or runs a task.
    ExtensionKind,
    "`install` or `run`",
    {
        Install => "install",
        Run => "run",
    }
);

text_value!(
    /// The display name of an extension.
    ExtensionName,
    |raw| plain_text(&raw, 1, 100, "1 to 100 characters")
);

impl From<&ExtensionKey> for ExtensionName {
    /// Uses the key as the name if there is no other.
    fn from(key: &ExtensionKey) -> Self {
        Self(key.as_str().to_owned())
    }
}

impl ExtensionName {
    /// Returns the name of an exact copy.
    #[must_use]
    pub fn forked(&self) -> Self {
        const FORK: &str = " (Fork)";
        let kept: String = self.as_str().chars().take(100 - FORK.len()).collect();
        Self(format!("{}{FORK}", kept.trim_end()))
    }
}

/// The `metadata` section of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// Its name in URLs.
    pub id: ExtensionKey,
    /// Its display name.
    pub name: ExtensionName,
    /// A description for users.
    pub description: String,
    /// The author.
    pub author: String,
    /// The icon that it is shown with.
    pub icon: String,
    /// The category in the catalog.
    pub category: Category,
    /// The kind: install or run.
    pub kind: ExtensionKind,
    /// The version.
    pub version: String,
    /// True if the definition claims that it was reviewed. It is trusted in the catalog only.
    pub is_verified: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_fifteen_categories_and_two_kinds() {
        assert_eq!((Category::ALL.len(), ExtensionKind::ALL.len()), (15, 2));
        for category in Category::ALL {
            assert_eq!(Category::try_from(category.as_str().to_owned()), Ok(*category));
        }
        assert!(Category::try_from("database".to_owned()).is_err());
        assert!(ExtensionKind::try_from("Install".to_owned()).is_err());
    }

    #[test]
    fn a_copy_says_that_it_is_one_and_fits() {
        let name: ExtensionName = "Hello note".parse().unwrap();
        assert_eq!(name.forked().as_str(), "Hello note (Fork)");
        let long: ExtensionName = "x".repeat(100).parse().unwrap();
        assert_eq!(long.forked().as_str().chars().count(), 100);
        assert!("x".repeat(101).parse::<ExtensionName>().is_err() && " ".parse::<ExtensionName>().is_err());
    }
}
