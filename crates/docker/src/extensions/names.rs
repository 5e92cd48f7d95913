//! The names of extensions' objects on the engine.

use data_encoding::HEXLOWER;
use launchway_domain::{
    deployments::ServiceName,
    extensions::{ExtensionKey, ObjectName, Run},
    ids::{InstanceId, OrganizationId},
};
use sha2::{Digest as _, Sha256};

use crate::labels::{self, Label};

/// The owner of objects: one organization and one extension.
#[derive(Debug, Clone)]
pub(super) struct ExtensionOwner {
    pub(super) instance: InstanceId,
    pub(super) organization: OrganizationId,
    pub(super) extension: ExtensionKey,
}

impl ExtensionOwner {
    /// The labels of all their objects.
    pub(super) fn marks(&self) -> Vec<Label> {
        labels::of_extension(self.instance, self.organization, &self.extension)
    }

    /// Returns the name of a container or volume that belongs to no composition.
    pub(super) fn named(&self, name: &ObjectName) -> String {
        format!("{}-{name}", self.prefix())
    }

    /// Returns the name of a service's container. Names without a composition contain no `_`.
    pub(super) fn service(&self, project: &ObjectName, service: &ServiceName) -> String {
        format!("{}-{project}_{service}", self.prefix())
    }

    /// Returns the name of a composition's volume.
    pub(super) fn volume(&self, project: &ObjectName, volume: &str) -> String {
        format!("{}-{project}_{volume}", self.prefix())
    }

    /// Returns the name of the compose project. It differs for each step of each run, so that compose does
    /// not take over anything that existed before.
    pub(super) fn project(&self, project: &ObjectName, run: &Run, order: i32) -> String {
        format!("{}-{project}_{}_{order}", self.prefix(), run.execution)
    }

    fn prefix(&self) -> String {
        let whole = format!("{}/{}/{}", self.instance, self.organization, self.extension);
        let hash = Sha256::digest(whole.as_bytes());
        format!("launchway-x-{}", HEXLOWER.encode(hash.get(..8).unwrap_or(&hash)))
    }
}

/// The parsed name of a container that was set aside.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Aside<'a> {
    /// Its original name.
    pub(super) name: &'a str,
    execution: &'a str,
    order: &'a str,
    /// True if it was running.
    pub(super) ran: bool,
}

impl Aside<'_> {
    /// Returns whether a step of this run set it aside.
    pub(super) fn is_of(&self, run: &Run) -> bool {
        self.execution == run.execution.to_string()
    }

    /// Returns whether this step of the run set it aside.
    pub(super) fn is_by(&self, run: &Run, order: i32) -> bool {
        self.is_of(run) && self.order == order.to_string()
    }
}

/// Returns the name of a container while it is set aside.
pub(super) fn set_aside(name: &str, run: &Run, order: i32, ran: bool) -> String {
    let state = if ran { "on" } else { "off" };
    format!("{name}.aside.{}.{order}.{state}", run.execution)
}

/// Parses such a name; `None` for every other.
pub(super) fn aside(name: &str) -> Option<Aside<'_>> {
    let mut parts = name.rsplitn(5, '.');
    let ran = match parts.next()? {
        "on" => true,
        "off" => false,
        _ => return None,
    };
    let (order, execution) = (parts.next()?, parts.next()?);
    if parts.next()? != "aside" {
        return None;
    }
    Some(Aside { name: parts.next()?, execution, order, ran })
}

#[cfg(test)]
mod tests {
    use launchway_domain::{extensions::Values, secret::Secret};
    use launchway_testkit::CountingIds;

    use super::*;

    fn run() -> Run {
        Run {
            organization: CountingIds::nth(1).into(),
            extension: "postgres".parse().unwrap(),
            execution: CountingIds::nth(2).into(),
            values: Secret::new(Values::new()),
            reserved: Vec::new(),
            routed: Vec::new(),
        }
    }

    fn whose(organization: u64, extension: &str) -> ExtensionOwner {
        ExtensionOwner {
            instance: CountingIds::nth(9).into(),
            organization: CountingIds::nth(organization).into(),
            extension: extension.parse().unwrap(),
        }
    }

    #[test]
    fn names_of_others_are_others() {
        let db = "db".parse().unwrap();
        let ours = whose(1, "postgres").named(&db);
        assert!(ours.starts_with("launchway-x-") && ours.ends_with("-db"), "{ours}");
        assert_eq!(ours.len(), "launchway-x-".len() + 16 + "-db".len());
        for other in [whose(2, "postgres"), whose(1, "redis")] {
            assert_ne!(other.named(&db), ours);
        }
        let (one, other) = ("a-b".parse().unwrap(), "a".parse().unwrap());
        let postgres = whose(1, "postgres");
        assert_ne!(postgres.volume(&one, "c"), postgres.volume(&other, "b-c"));
        assert_ne!(postgres.service(&other, &"b".parse().unwrap()), postgres.named(&one));
    }

    #[test]
    fn the_name_of_what_is_set_aside_says_by_whom() {
        let run = run();
        for (name, ran) in [("launchway-x-1-db", true), ("launchway-x-1-shop_my.db", false)] {
            let called = set_aside(name, &run, 3, ran);
            let read = aside(&called).unwrap();
            assert_eq!((read.name, read.ran), (name, ran));
            assert!(read.is_of(&run) && read.is_by(&run, 3) && !read.is_by(&run, 4));
        }
        for name in ["launchway-x-1-db", "launchway-x-1-a_b.on", "a.aside.x.1.maybe", "a.beside.x.1.on"] {
            assert_eq!(aside(name), None, "{name}");
        }
    }
}
