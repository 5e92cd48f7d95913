//! What an extension is, for who looks for one.

use super::ExtensionKey;
use crate::value::{named, plain_text, text_value};

named!(
    /// What an extension is about.
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
    /// Whether an extension sets something up or does something.
    ExtensionKind,
    "`install` or `run`",
    {
        Install => "install",
        Run => "run",
    }
);

text_value!(
    /// What an extension is called.
    ExtensionName,
    |raw| plain_text(&raw, 1, 100, "1 to 100 characters")
);

impl From<&ExtensionKey> for ExtensionName {
    /// For what has no better one.
    fn from(key: &ExtensionKey) -> Self {
        Self(key.as_str().to_owned())
    }
}

impl ExtensionName {
    /// What an exact copy is called.
    #[must_use]
    pub fn forked(&self) -> Self {
        const FORK: &str = " (Fork)";
        let kept: String = self.as_str().chars().take(100 - FORK.len()).collect();
        Self(format!("{}{FORK}", kept.trim_end()))
    }
}

/// What a definition says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// How it is called in paths.
    pub id: ExtensionKey,
    /// How people call it.
    pub name: ExtensionName,
    /// What it does.
    pub description: String,
    /// Who wrote it.
    pub author: String,
    /// What it is shown by.
    pub icon: String,
    /// What it is about.
    pub category: Category,
    /// Whether it sets something up or does something.
    pub kind: ExtensionKind,
    /// Which version of it this is.
    pub version: String,
    /// Whether it says of itself that somebody has looked at it. Only the catalog is believed.
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
