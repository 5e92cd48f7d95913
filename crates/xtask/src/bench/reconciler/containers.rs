//! The containers of the copies that `rows` makes, as an engine describes them.

/// The state of all containers of a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContainerState {
    Running,
    Stopped,
}

impl ContainerState {
    /// The name that `rows` and the engine use for it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopped => "stopped",
        }
    }
}

/// One container for each copy of an application, numbered from 1.
#[derive(Clone, Debug)]
pub(crate) struct Fleet {
    pub(crate) organization: String,
    pub(crate) size: u32,
    pub(crate) state: ContainerState,
    pub(crate) port: u16,
}

impl Fleet {
    /// The body of `GET /containers/json`.
    pub(crate) fn list(&self, instance: &str) -> String {
        let containers: Vec<String> = (1..=self.size).map(|number| self.listed(instance, number)).collect();
        format!("[{}]", containers.join(","))
    }

    /// The body of `GET /containers/<id>/json`; `None` if no container has this id.
    pub(crate) fn inspect(&self, instance: &str, id: &str) -> Option<String> {
        let number = u32::from_str_radix(id, 16).ok().filter(|number| (1..=self.size).contains(number))?;
        let Names { name, image, .. } = Names::of(number);
        let is_running = self.state == ContainerState::Running;
        let (status, pid) = if is_running { ("running", number + 10_000) } else { ("exited", 0) };
        let (labels, networks) = (self.labels(instance, number), self.networks(number));
        Some(format!(
            r#"{{"Id":"{id}","Created":"2026-01-01T00:00:00.000000000Z","Path":"/app/server","Args":[],"State":{{"Status":"{status}","Running":{is_running},"Paused":false,"Restarting":false,"OOMKilled":false,"Dead":false,"Pid":{pid},"ExitCode":0,"Error":"","StartedAt":"2026-01-01T00:00:01Z","FinishedAt":"0001-01-01T00:00:00Z"}},"Image":"sha256:{id}","Name":"/{name}","RestartCount":0,"HostConfig":{{"NetworkMode":"launchway-bench","RestartPolicy":{{"Name":"unless-stopped","MaximumRetryCount":0}}}},"Config":{{"Image":"{image}","Labels":{labels}}},"NetworkSettings":{{"Networks":{networks}}}}}"#
        ))
    }

    /// Returns an event that triggers a reconciliation: a container was started at this time, in
    /// nanoseconds since 1970.
    pub(crate) fn event(&self, instance: &str, number: u32, nanoseconds: u128) -> String {
        let (Names { id, name, .. }, seconds) = (Names::of(number), nanoseconds / 1_000_000_000);
        format!(
            r#"{{"status":"start","id":"{id}","Type":"container","Action":"start","Actor":{{"ID":"{id}","Attributes":{{"launchway.instance":"{instance}","name":"{name}"}}}},"scope":"local","time":{seconds},"timeNano":{nanoseconds}}}"#
        ) + "\n"
    }

    fn listed(&self, instance: &str, number: u32) -> String {
        let (Names { id, name, image }, port) = (Names::of(number), self.port);
        let (state, status) = match self.state {
            ContainerState::Running => ("running", "Up 2 hours"),
            ContainerState::Stopped => ("exited", "Exited (0) 2 hours ago"),
        };
        let (labels, networks) = (self.labels(instance, number), self.networks(number));
        format!(
            r#"{{"Id":"{id}","Names":["/{name}"],"Image":"{image}","ImageID":"sha256:{id}","Command":"/app/server","Created":1767225600,"Ports":[{{"PrivatePort":{port},"Type":"tcp"}}],"Labels":{labels},"State":"{state}","Status":"{status}","HostConfig":{{"NetworkMode":"launchway-bench"}},"NetworkSettings":{{"Networks":{networks}}},"Mounts":[]}}"#
        )
    }

    fn labels(&self, instance: &str, number: u32) -> String {
        let (application, deployment) = (copy_id(number, APPLICATION), copy_id(number, DEPLOYMENT));
        let (organization, address) = (&self.organization, address(number));
        format!(
            r#"{{"launchway.address":"{address}","launchway.aliases":"","launchway.application":"{application}","launchway.attempt":"1","launchway.call":"{deployment}","launchway.deployment":"{deployment}","launchway.instance":"{instance}","launchway.organization":"{organization}","launchway.service":""}}"#
        )
    }

    fn networks(&self, number: u32) -> String {
        let (Names { id, .. }, assigned) = (Names::of(number), address(number));
        let address = if self.state == ContainerState::Running { assigned.as_str() } else { "" };
        format!(
            r#"{{"launchway-bench":{{"IPAMConfig":{{"IPv4Address":"{assigned}"}},"Links":null,"Aliases":null,"NetworkID":"{id}","EndpointID":"{id}","Gateway":"127.1.255.254","IPAddress":"{address}","IPPrefixLen":16,"IPv6Gateway":"","GlobalIPv6Address":"","GlobalIPv6PrefixLen":0,"MacAddress":"02:42:7f:01:00:01","DriverOpts":null}}}}"#
        )
    }
}

/// The names of one container.
struct Names {
    id: String,
    name: String,
    image: String,
}

impl Names {
    fn of(number: u32) -> Self {
        let (application, deployment) = (copy_id(number, APPLICATION), copy_id(number, DEPLOYMENT));
        Self {
            id: format!("{number:064x}"),
            name: format!("launchway-{deployment}-1"),
            image: format!("launchway/{application}:{deployment}"),
        }
    }
}

/// The ends of the ids that `rows` gives copies.
const APPLICATION: u16 = 1;
pub(crate) const DEPLOYMENT: u16 = 3;

/// The id that `rows` gives a copy of an application or a deployment.
pub(crate) fn copy_id(number: u32, of: u16) -> String {
    format!("01900000-{:04x}-{:04x}-7000-80000000{of:04x}", number >> 16, number & 0xffff)
}

/// The loopback address that `rows` gives a container.
fn address(number: u32) -> String {
    format!("127.1.{}.{}", number / 256, number % 256)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet() -> Fleet {
        Fleet { organization: "o".to_owned(), size: 300, state: ContainerState::Running, port: 8080 }
    }

    #[test]
    fn names_are_those_that_rows_makes() {
        assert_eq!(copy_id(1, DEPLOYMENT), "01900000-0000-0001-7000-800000000003");
        assert_eq!(copy_id(1_000_000, DEPLOYMENT), "01900000-000f-4240-7000-800000000003");
        assert_eq!((address(1), address(300)), ("127.1.0.1".to_owned(), "127.1.1.44".to_owned()));
        assert_eq!(Names::of(255).id, format!("{}ff", "0".repeat(62)));
    }

    #[test]
    fn a_list_has_every_container_once() {
        let list = fleet().list("i");
        assert_eq!(list.matches(r#""State":"running""#).count(), 300);
        assert!((1..=300).all(|number| list.contains(&format!(r#""Id":"{number:064x}""#))));
    }

    #[test]
    fn only_containers_of_the_fleet_are_inspected() {
        let inspect = |number: u32| fleet().inspect("i", &format!("{number:064x}"));
        assert!(inspect(300).is_some_and(|record| record.contains(r#""IPAddress":"127.1.1.44""#)));
        assert!(inspect(0).is_none() && inspect(301).is_none() && fleet().inspect("i", "x").is_none());
    }
}
