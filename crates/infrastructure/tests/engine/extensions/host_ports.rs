//! Host ports: only those of the range, each recorded until its container is removed.

use std::{
    collections::BTreeSet,
    net::TcpListener,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use launchway_domain::{
    deployments::StepError,
    extensions::{
        Action, ExtensionKey, ExtensionRunner as _, HeldPorts, HostPort, HostPorts, PortError, PortKey,
        PortPolicy, PortRecord, PortRequest, Run,
    },
    ids::OrganizationId,
    quotas::{Quota, Resource},
    store::StoreError,
};
use serde_json::json;

use super::{Extending, inspected, organization, run_it, spec};
use crate::{installation::Installation, recorder::Recorder};

/// Records in memory, by the rules of the domain.
#[derive(Debug, Default)]
pub(super) struct MemoryPorts(Mutex<Vec<PortRecord>>);

impl MemoryPorts {
    fn held(&self) -> Vec<u16> {
        self.0.lock().unwrap().iter().map(|record| record.port.host.get()).collect()
    }
}

#[async_trait]
impl HostPorts for MemoryPorts {
    async fn allocate(&self, policy: PortPolicy, request: PortRequest) -> Result<Vec<HostPort>, PortError> {
        let mut held = self.0.lock().unwrap();
        let given = policy.allocate(&request, &held)?;
        held.retain(|record| given.iter().all(|given| given.port.key() != record.port.key()));
        held.extend(given.iter().cloned());
        Ok(given.into_iter().map(|record| record.port).collect())
    }

    async fn held(
        &self,
        organization: OrganizationId,
        extension: &ExtensionKey,
    ) -> Result<HeldPorts, StoreError> {
        let records = self.0.lock().unwrap().clone();
        let is_own =
            |record: &PortRecord| record.organization == organization && record.extension == *extension;
        Ok(HeldPorts { is_installed: records.iter().any(is_own), records })
    }

    async fn retain(
        &self,
        organization: OrganizationId,
        extension: &ExtensionKey,
        published: BTreeSet<PortKey>,
    ) -> Result<(), StoreError> {
        self.0.lock().unwrap().retain(|record| {
            let is_own = record.organization == organization && record.extension == *extension;
            !is_own || published.contains(&record.port.key())
        });
        Ok(())
    }
}

fn within(range: &str, limit: u64) -> Extending {
    let quota = Quota { resource: Resource::ExtensionPorts, limit };
    Extending::with(Installation::new(), |options| {
        options.ports = PortPolicy { range: range.parse().unwrap(), quota };
    })
}

fn publishing(name: &str, port: &str) -> Action {
    let mut wanted = spec(name);
    wanted.ports = vec![port.to_owned().try_into().unwrap()];
    run_it(wanted)
}

async fn bindings(extending: &Extending, run: &Run, name: &str) -> serde_json::Value {
    let container = extending.engine_name(run, name).await;
    inspected(&container)["HostConfig"]["PortBindings"].clone()
}

#[tokio::test]
async fn a_port_outside_the_range_is_never_published() {
    let extending = within("21100-21109", 0);
    let run = extending.begin(organization(), "postgres").await;
    for port in ["443:443", "5432:5432", "21099:80", "21110:80"] {
        let refused = extending.perform(&run, 1, &publishing("db", port)).await;
        let Err(StepError::Rejected(message)) = refused else { panic!("{port}: {refused:?}") };
        assert!(message.contains("21100-21109"), "{message}");
    }
    assert_eq!(extending.installation.traces.containers(), Vec::<String>::new());
    assert_eq!(extending.ports.held(), Vec::<u16>::new());
}

#[tokio::test]
async fn an_assigned_port_is_free_printed_and_kept() {
    let extending = within("21120-21129", 0);
    // Another program of the machine has the first one.
    let _other = TcpListener::bind(("127.0.0.1", 21_120)).unwrap();
    let whose = organization();
    let run = extending.begin(whose, "postgres").await;
    let output = Arc::new(Recorder::default());
    let done = extending.runner.perform(&run, 1, &publishing("db", "0:5432"), output.clone()).await;
    assert_eq!(done, Ok(0));
    assert!(output.text().contains("Port 5432 of the container is 127.0.0.1:21121\n"), "{}", output.text());
    let expected = json!({ "5432/tcp": [{ "HostIp": "127.0.0.1", "HostPort": "21121" }] });
    assert_eq!(bindings(&extending, &run, "db").await, expected);
    extending.runner.finish(&run).await.unwrap();
    assert_eq!(extending.ports.held(), [21_121]);
    let again = extending.begin(whose, "postgres").await;
    extending.done(&again, 1, &publishing("db", "0:5432")).await;
    assert_eq!(bindings(&extending, &again, "db").await, expected);
}

#[tokio::test]
async fn a_port_is_given_back_when_its_container_goes() {
    let extending = within("21140-21149", 0);
    let whose = organization();
    let run = extending.begin(whose, "postgres").await;
    extending.done(&run, 1, &publishing("db", "21140:80")).await;
    assert_eq!(extending.ports.held(), [21_140]);
    extending.revert(&run, 1, &publishing("db", "21140:80")).await.unwrap();
    extending.runner.discard(&run).await.unwrap();
    assert_eq!(extending.ports.held(), Vec::<u16>::new());
    let second = extending.begin(whose, "postgres").await;
    extending.done(&second, 1, &publishing("db", "21141:80")).await;
    extending.runner.finish(&second).await.unwrap();
    assert_eq!(extending.ports.held(), [21_141]);
    extending.runner.uninstall(whose, &"postgres".parse().unwrap(), true).await.unwrap();
    assert_eq!(extending.ports.held(), Vec::<u16>::new());
}

#[tokio::test]
async fn a_replaced_port_is_held_until_the_run_ends() {
    let extending = within("21160-21169", 0);
    let (whose, other) = (organization(), organization());
    let run = extending.begin(whose, "postgres").await;
    extending.done(&run, 1, &publishing("db", "21160:80")).await;
    extending.runner.finish(&run).await.unwrap();
    let second = extending.begin(whose, "postgres").await;
    extending.done(&second, 1, &publishing("db", "21161:80")).await;
    let foreign = extending.begin(other, "postgres").await;
    let refused = extending.perform(&foreign, 1, &publishing("db", "21160:80")).await;
    assert!(matches!(refused, Err(StepError::Rejected(_))), "the old one may come back: {refused:?}");
    extending.runner.finish(&second).await.unwrap();
    extending.done(&foreign, 1, &publishing("db", "21160:80")).await;
}

#[tokio::test]
async fn a_port_from_before_the_range_stays_with_its_extension() {
    let before = Extending::new();
    let whose = organization();
    let run = before.begin(whose, "postgres").await;
    before.done(&run, 1, &publishing("db", "21180:80")).await;
    before.runner.finish(&run).await.unwrap();
    before.ports.0.lock().unwrap().clear();
    let after = before.restarted(|options| options.ports.range = "21190-21199".parse().unwrap());
    let second = after.begin(whose, "postgres").await;
    after.done(&second, 1, &publishing("db", "21180:80")).await;
    let refused = after.perform(&second, 2, &publishing("other", "21181:80")).await;
    assert!(matches!(refused, Err(StepError::Rejected(_))), "{refused:?}");
}

#[tokio::test]
async fn an_organization_has_so_many_ports_and_no_more() {
    let extending = within("21200-21209", 1);
    let whose = organization();
    let run = extending.begin(whose, "postgres").await;
    extending.done(&run, 1, &publishing("one", "80")).await;
    let refused = extending.perform(&run, 2, &publishing("two", "80")).await;
    let Err(StepError::Rejected(message)) = refused else { panic!("{refused:?}") };
    assert!(
        message.starts_with("the quota `extension_ports` of this organization is reached: 1 of 1"),
        "{message}"
    );
    let other = extending.begin(organization(), "postgres").await;
    extending.done(&other, 1, &publishing("one", "80")).await;
}
