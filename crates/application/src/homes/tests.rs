use launchway_domain::{
    deployments::ImageName,
    homes::MockHomeRepository,
    nodes::{MockNodeInventory, Node, NodeAvailability, NodeRole},
    replicas::{MockReplicaRegistry, Replica, ReplicaStatus},
};
use launchway_testkit::builders::{a_deployment, an_application};
use uuid::Uuid;

use super::*;

fn server(number: u128) -> InstanceId {
    Uuid::from_u128(number).into()
}

fn a_node(number: u128, is_ready: bool) -> Node {
    Node {
        id: format!("node{number}").parse().unwrap(),
        hostname: format!("machine-{number}"),
        address: None,
        is_ready,
        availability: NodeAvailability::Active,
        role: NodeRole::Manager,
        is_prepared: true,
        version: String::new(),
    }
}

fn machine(number: u128) -> Machine {
    let node = a_node(number, true);
    Machine { engine: format!("engine-{number}"), node: node.id, hostname: node.hostname }
}

fn a_home(application: ApplicationId, number: u128) -> Home {
    Home { subject: application.into(), server: server(number), machine: machine(number) }
}

fn seen(number: u128, is_alive: bool) -> ReplicaStatus {
    let replica = Replica {
        id: server(number),
        boot: Uuid::from_u128(number).into(),
        version: "1.0.0".to_owned(),
        hostname: String::new(),
        address: String::new(),
        engine: None,
        started_at: launchway_domain::clock::Timestamp::UNIX_EPOCH,
    };
    let seen_at = launchway_domain::clock::Timestamp::UNIX_EPOCH;
    ReplicaStatus { replica, seen_at, is_alive, is_leader: false, routes_seen: 0 }
}

/// Returns the homes as the first server uses them. Every other application has a home on `others`.
fn homes(own: Node, stored: Vec<Home>, replicas: Vec<ReplicaStatus>, nodes: Vec<Node>) -> Homes {
    let mut repository = MockHomeRepository::new();
    let all = stored.clone();
    repository.expect_homes().returning(move || Ok(all.clone()));
    repository.expect_assign().returning(move |new| {
        Ok(stored.iter().find(|home| home.subject == new.subject).unwrap_or(new).clone())
    });
    let mut registry = MockReplicaRegistry::new();
    registry.expect_replicas().returning(move || Ok(replicas.clone()));
    let mut inventory = MockNodeInventory::new();
    inventory.expect_own_node().returning(move || Ok((own.clone(), "engine-1".to_owned())));
    inventory.expect_nodes().returning(move || Ok(nodes.clone()));
    let ports = HomePorts {
        repository: Arc::new(repository),
        registry: Arc::new(registry),
        nodes: Arc::new(inventory),
    };
    Homes::new(server(1), ports)
}

fn application(number: u128) -> ApplicationId {
    Uuid::from_u128(number).into()
}

#[tokio::test]
async fn the_machine_of_the_first_deployment_becomes_the_home() {
    let elsewhere = a_home(application(8), 2);
    let homes = homes(a_node(1, true), vec![elsewhere], Vec::new(), Vec::new());
    let home = homes.settle(application(7)).await.unwrap();
    assert_eq!(home, Some(a_home(application(7), 1)));
    let refused = homes.settle(application(8)).await.unwrap_err();
    assert_eq!(refused, StepError::Retryable("the application runs on machine machine-2".to_owned()));
    assert_eq!(Homes::default().settle(application(8)).await, Ok(None), "there is one machine");
}

#[tokio::test]
async fn a_machine_with_volumes_of_an_application_becomes_its_home() {
    let mut repository = MockHomeRepository::new();
    repository
        .expect_assign()
        .withf(|new| *new == a_home(application(7), 1))
        .once()
        .returning(|new| Ok(new.clone()));
    let mut inventory = MockNodeInventory::new();
    // It runs there already, so it does not matter whether the machine takes others.
    let drained = Node { availability: NodeAvailability::Drain, ..a_node(1, true) };
    inventory.expect_own_node().returning(move || Ok((drained.clone(), "engine-1".to_owned())));
    let ports = HomePorts {
        repository: Arc::new(repository),
        registry: Arc::new(MockReplicaRegistry::new()),
        nodes: Arc::new(inventory),
    };
    Homes::new(server(1), ports).adopt_application(application(7)).await.unwrap();
    Homes::default().adopt_application(application(7)).await.unwrap();
}

#[tokio::test]
async fn a_machine_that_runs_no_applications_is_no_home() {
    let unprepared = Node { is_prepared: false, ..a_node(1, true) };
    let drained = Node { availability: NodeAvailability::Drain, ..a_node(1, true) };
    for node in [unprepared, drained] {
        let homes = homes(node, Vec::new(), Vec::new(), Vec::new());
        let StepError::Unavailable(why) = homes.settle(application(7)).await.unwrap_err() else {
            panic!("another machine may do it, and this was no attempt");
        };
        assert!(why.contains("machine-1") && why.contains("launchway node activate"), "{why}");
    }
}

#[tokio::test]
async fn a_home_that_is_drained_deploys_what_it_has() {
    let drained = Node { availability: NodeAvailability::Drain, ..a_node(1, true) };
    let homes = homes(drained, vec![a_home(application(7), 1)], Vec::new(), Vec::new());
    assert_eq!(homes.settle(application(7)).await.unwrap(), Some(a_home(application(7), 1)));
}

/// Renews these homes on the first server, whose machine is the first node.
async fn renewed(stored: Vec<Home>, replicas: Vec<ReplicaStatus>, times: usize) {
    let mut repository = MockHomeRepository::new();
    repository.expect_homes().returning(move || Ok(stored.clone()));
    repository
        .expect_renew()
        .withf(|own, here, alive| {
            (*own, here, alive) == (server(1), &machine(1), &[server(1), server(3)][..])
        })
        .times(times)
        .returning(|_, _, _| Ok(1));
    let mut registry = MockReplicaRegistry::new();
    registry.expect_replicas().returning(move || Ok(replicas.clone()));
    let mut inventory = MockNodeInventory::new();
    inventory.expect_own_node().returning(|| Ok((a_node(1, true), "engine-1".to_owned())));
    let (repository, registry) = (Arc::new(repository), Arc::new(registry));
    let homes = Homes::new(server(1), HomePorts { repository, registry, nodes: Arc::new(inventory) });
    homes.renew().await.unwrap();
}

#[tokio::test]
async fn homes_follow_their_machine_to_another_node_or_server() {
    let replicas = || vec![seen(1, true), seen(2, false), seen(3, true)];
    let (own, other) = (a_home(application(7), 1), a_home(application(8), 2));
    renewed(vec![own.clone(), other], replicas(), 0).await;
    let machine = Machine { node: "node9".parse().unwrap(), ..machine(1) };
    let joined_again = Home { machine, ..own.clone() };
    renewed(vec![joined_again], replicas(), 1).await;
    let of_lost_data = Home { server: server(2), ..own };
    renewed(vec![of_lost_data], replicas(), 1).await;
    Homes::default().renew().await.unwrap();
}

#[tokio::test]
async fn only_compositions_are_bound_to_a_machine() {
    let stored = vec![a_home(application(7), 1), a_home(application(8), 2)];
    let view = homes(a_node(1, true), stored, Vec::new(), Vec::new()).view().await.unwrap();
    let version = |number: u128, is_composition: bool| {
        let mut deployment = a_deployment().of(&an_application().build()).build();
        deployment.application_id = application(number);
        let (application, id) = (deployment.application_id, deployment.id);
        deployment.image = Some(match is_composition {
            true => ImageName::of_service(application, id, &"web".parse().unwrap()),
            false => ImageName::of(application, id),
        });
        deployment
    };
    for (number, of_composition, of_objects) in [
        (7, Place::Here, Place::Here),
        (8, Place::Elsewhere, Place::Elsewhere),
        (9, Place::Anywhere, Place::Anywhere),
    ] {
        assert_eq!(view.place_of(&version(number, true)), of_composition);
        assert_eq!(view.place_of(&version(number, false)), Place::Anywhere);
        assert_eq!(view.place(application(number)), of_objects);
    }
    assert!(view.has_own());
    assert_eq!(Homes::default().view().await.unwrap().place(application(7)), Place::Anywhere);
}

#[tokio::test]
async fn a_home_is_lost_when_neither_server_nor_machine_answers() {
    let stored = vec![a_home(application(7), 1), a_home(application(8), 2), a_home(application(9), 3)];
    let nodes = vec![a_node(1, true), a_node(2, true), a_node(3, false)];
    let absent = async |replicas: Vec<ReplicaStatus>| {
        let homes = homes(a_node(1, true), stored.clone(), replicas, nodes.clone());
        let view = homes.view().await.unwrap();
        let mut absent = homes.without_server(&view).await.unwrap();
        absent.sort_by_key(|absent| absent.home.subject);
        absent
    };
    assert_eq!(absent(vec![seen(1, true), seen(2, true), seen(3, true)]).await, []);
    let found = absent(vec![seen(1, true), seen(2, false)]).await;
    assert_eq!(found.iter().map(|absent| absent.is_lost).collect::<Vec<_>>(), [false, true]);
    assert_eq!(found[0].reason(), "it runs on machine machine-2, whose Launchway server is not running");
    assert_eq!(
        found[1].reason(),
        "it runs on machine machine-3, which is not reachable; it starts nowhere else because its volumes are there"
    );
}

#[cfg(feature = "extensions")]
mod extensions {
    use super::*;

    fn organization(number: u128) -> OrganizationId {
        Uuid::from_u128(number).into()
    }

    fn home_of(subject: SubjectId, number: u128) -> Home {
        Home { subject, ..a_home(application(1), number) }
    }

    /// Returns homes whose repository expects these to be assigned.
    fn expecting(own: Node, stored: Vec<Home>, assigned: Vec<Home>) -> Homes {
        let mut repository = MockHomeRepository::new();
        repository.expect_homes().returning(move || Ok(stored.clone()));
        for home in assigned {
            repository
                .expect_assign()
                .withf(move |new| *new == home)
                .times(1)
                .returning(|new| Ok(new.clone()));
        }
        let mut inventory = MockNodeInventory::new();
        inventory.expect_own_node().returning(move || Ok((own.clone(), "engine-1".to_owned())));
        let (repository, registry) = (Arc::new(repository), Arc::new(MockReplicaRegistry::new()));
        Homes::new(server(1), HomePorts { repository, registry, nodes: Arc::new(inventory) })
    }

    #[tokio::test]
    async fn the_machine_of_the_first_request_becomes_the_home_of_all() {
        let all = subject_of_extensions(organization(5));
        let homes = expecting(a_node(1, true), Vec::new(), Vec::new());
        assert_eq!(homes.of_extensions(organization(5)).await.unwrap(), Some(home_of(all, 1)));
        // Another one runs where they are, whichever server is asked.
        let drained = Node { availability: NodeAvailability::Drain, ..a_node(1, true) };
        let homes = expecting(drained, vec![home_of(all, 2)], Vec::new());
        assert_eq!(homes.of_extensions(organization(5)).await.unwrap(), Some(home_of(all, 2)));
        assert_eq!(Homes::default().of_extensions(organization(5)).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_machine_that_runs_no_applications_is_no_home_of_extensions() {
        let unprepared = Node { is_prepared: false, ..a_node(1, true) };
        let homes = expecting(unprepared, Vec::new(), Vec::new());
        let refused = homes.of_extensions(organization(5)).await.unwrap_err();
        assert!(
            matches!(&refused, Error::Conflict(why) if why.contains("launchway node activate")),
            "{refused}"
        );
    }

    #[tokio::test]
    async fn an_engine_that_does_not_answer_is_no_conflict() {
        let mut repository = MockHomeRepository::new();
        repository.expect_homes().returning(|| Ok(Vec::new()));
        let mut inventory = MockNodeInventory::new();
        inventory.expect_own_node().returning(|| Err(StepError::Retryable("no list of nodes".to_owned())));
        let (repository, registry) = (Arc::new(repository), Arc::new(MockReplicaRegistry::new()));
        let homes = Homes::new(server(1), HomePorts { repository, registry, nodes: Arc::new(inventory) });
        let refused = homes.of_extensions(organization(5)).await.unwrap_err();
        assert!(matches!(refused, Error::Unavailable(_)), "{refused}");
    }

    #[tokio::test]
    async fn what_is_uninstalled_makes_no_home() {
        let homes = expecting(a_node(1, true), Vec::new(), Vec::new());
        assert!(!homes.bind_extension(organization(5), Uuid::from_u128(6).into()).await.unwrap());
    }
}
