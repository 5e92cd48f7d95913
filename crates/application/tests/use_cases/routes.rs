//! Routes from the records.

use std::sync::Arc;

use launchway_application::routes::{RoutePorts, Routes};
use launchway_domain::{
    applications::{Application, MockApplicationRepository, NamedApplication},
    deployments::{
        ContainerRecord, Deployment, DeploymentState, LiveVersion, MockDeploymentRepository, MockSiteStore,
        StepError,
    },
    extensions::MockExtensionRepository,
    ids::DeploymentId,
    routes::{MockTrafficRouter, Route, Target},
};
use launchway_testkit::builders::{a_container, a_deployment};

use crate::{
    applications::{scope, web},
    world::{State, World},
};

fn container() -> Deployment {
    a_deployment().of(&web().build()).run_by(a_container("web")).in_state(DeploymentState::Deployed).build()
}

fn site() -> Deployment {
    a_deployment().of(&web().build()).in_state(DeploymentState::Deployed).build()
}

fn application(live: Option<DeploymentId>) -> Application {
    Application { live, ..web().at_domain("example.com").also_at("www.example.com").build() }
}

fn names() -> Vec<String> {
    ["example.com", "www.example.com", "web.analytics.localhost"].map(str::to_owned).to_vec()
}

fn arrange(state: &mut State, application: Application, deployments: Vec<Deployment>) {
    state.named = vec![NamedApplication { id: application.id, hosts: names() }];
    let is_live = |deployment: &&Deployment| Some(deployment.id) == application.live;
    let live = deployments.iter().find(is_live).cloned();
    state.live = live
        .into_iter()
        .map(|deployment| LiveVersion { application: application.clone(), deployment })
        .collect();
    (state.application, state.deployments) = (Some(application), deployments);
}

/// Returns the routes after an update of one application, and after one of all.
async fn led(arrange: impl FnOnce(&mut State)) -> (String, Target) {
    let world = World::with(arrange);
    let id = web().build().id;
    assert_eq!(world.routes().follow(scope(), id).await, Ok(()));
    let one = world.journal().pop().unwrap_or_default();
    let all = followed(&world).await;
    let Ok([Route { subject, hosts, target }]) = <[Route; 1]>::try_from(all) else { panic!("one route") };
    assert_eq!((subject, hosts), (id.into(), names()));
    (one, target)
}

async fn followed(world: &Arc<World>) -> Vec<Route> {
    assert_eq!(world.routes().follow_all().await, Ok(()));
    world.state().routes.pop().unwrap_or_default()
}

#[tokio::test]
async fn routes_to_the_port_that_the_container_was_started_with() {
    let (one, all) = led(|state| {
        let mut application = application(Some(container().id));
        // Changed for the next version.
        application.blueprint.port = 9000.try_into().unwrap();
        arrange(state, application, vec![container()]);
    })
    .await;
    assert_eq!(one, "switch to 10.0.0.7:8080");
    assert_eq!(all, Target::container(a_container("web").id, "10.0.0.7:8080".parse().unwrap()));
}

#[tokio::test]
async fn a_container_that_does_not_run_gets_none() {
    let still = ContainerRecord { address: None, ..a_container("web") };
    let (one, all) = led(|state| {
        let deployment = Deployment { container: Some(still), ..container() };
        arrange(state, application(Some(deployment.id)), vec![deployment]);
    })
    .await;
    assert_eq!((one.as_str(), all), ("switch to nowhere: absent", Target::Absent));
}

#[tokio::test]
async fn routes_to_the_directory_of_the_site_or_its_rollback_target() {
    let back = || a_deployment().of(&web().build()).numbered(3).back_to(site().id).build();
    for live in [site(), back()] {
        let (one, all) = led(|state| {
            state.published = vec![site().id];
            arrange(state, application(Some(live.id)), vec![site(), back()]);
        })
        .await;
        assert_eq!((one.as_str(), all), ("switch to /sites/#1", Target::Site("/sites/#1".into())));
    }
}

#[tokio::test]
async fn a_site_whose_files_are_gone_gets_none() {
    let (one, all) = led(|state| arrange(state, application(Some(site().id)), vec![site()])).await;
    assert_eq!((one.as_str(), all), ("switch to nowhere: absent", Target::Absent));
}

#[tokio::test(start_paused = true)]
async fn an_earlier_site_is_served_until_the_new_one_is_fetched() {
    let new = || a_deployment().of(&web().build()).numbered(2).in_state(DeploymentState::Deployed).build();
    let world = World::with(|state| {
        state.published = vec![site().id, new().id];
        arrange(state, application(Some(site().id)), vec![site(), new()]);
    });
    let routes = world.routes();
    let target = || world.state().routes.pop().map(|routes| routes[0].target.clone());
    routes.follow_all().await.unwrap();
    assert_eq!(target(), Some(Target::Site("/sites/#1".into())));

    arrange(&mut world.state(), application(Some(new().id)), vec![site(), new()]);
    world.state().delay("release", std::time::Duration::from_secs(60));
    let since = tokio::time::Instant::now();
    routes.follow_all().await.unwrap();
    assert_eq!(target(), Some(Target::Site("/sites/#1".into())), "the new one is not there yet");
    assert_eq!(since.elapsed().as_secs(), 2, "the other routes do not wait for it");

    world.state().delay("release", std::time::Duration::ZERO);
    world.state().fault("release", 1);
    routes.confirm().await.unwrap();
    assert_eq!(target(), Some(Target::Site("/sites/#1".into())), "it cannot be fetched");
    routes.confirm().await.unwrap();
    assert_eq!(target(), Some(Target::Site("/sites/#2".into())), "without a wait for the next minute");
}

#[tokio::test]
async fn what_is_stopped_and_what_never_was_live_differ() {
    let stopped = || Application { is_stopped: true, ..application(Some(container().id)) };
    let (one, all) = led(|state| arrange(state, stopped(), vec![container()])).await;
    assert_eq!((one.as_str(), all), ("switch to nowhere: stopped", Target::Stopped));

    let (one, all) = led(|state| arrange(state, application(None), vec![container()])).await;
    assert_eq!((one.as_str(), all), ("switch to nowhere: absent", Target::Absent));
}

#[tokio::test]
async fn an_application_that_is_gone_is_forgotten() {
    let world = World::with(|_| {});
    world.routes().follow(scope(), web().build().id).await.unwrap();
    assert_eq!(world.journal(), ["withdraw"]);
    assert_eq!(followed(&world).await, []);
}

#[tokio::test(start_paused = true)]
async fn an_older_reading_never_replaces_a_newer_one() {
    let world = World::with(|state| {
        arrange(state, application(Some(container().id)), vec![container()]);
        state.delay("replace all", std::time::Duration::from_secs(5));
    });
    let routes = world.routes();
    let reading = async { routes.follow_all().await.unwrap() };
    let changing = async {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        routes.follow(scope(), web().build().id).await.unwrap();
        world.state().journal.push("changed".to_owned());
    };
    let since = tokio::time::Instant::now();
    tokio::join!(reading, changing);
    assert_eq!(since.elapsed().as_secs(), 5, "the change waits for its turn");
    assert_eq!(world.journal(), ["switch to 10.0.0.7:8080", "changed"]);
}

#[tokio::test]
async fn where_nobody_leads_traffic_nothing_is_read() {
    let mut router = MockTrafficRouter::new();
    router.expect_is_there().return_const(false);
    // A call of one of these fails the test.
    let ports = RoutePorts {
        applications: Arc::new(MockApplicationRepository::new()),
        deployments: Arc::new(MockDeploymentRepository::new()),
        sites: Arc::new(MockSiteStore::new()),
        router: Arc::new(router),
    };
    let routes = Routes::new(ports, None).with_extensions(Arc::new(MockExtensionRepository::new()));
    assert_eq!(routes.follow(scope(), web().build().id).await, Ok(()));
    assert_eq!(routes.follow_all().await, Ok(()));
}

/// Returns routes over a router with these expectations, in an installation without applications.
fn routes_over(router: MockTrafficRouter) -> Routes {
    let (mut applications, mut deployments) =
        (MockApplicationRepository::new(), MockDeploymentRepository::new());
    applications.expect_named().returning(|| Ok(Vec::new()));
    applications.expect_get().returning(|_, _| Ok(None));
    deployments.expect_live().returning(|| Ok([].into()));
    let ports = RoutePorts {
        applications: Arc::new(applications),
        deployments: Arc::new(deployments),
        sites: Arc::new(MockSiteStore::new()),
        router: Arc::new(router),
    };
    Routes::new(ports, None)
}

fn a_router() -> MockTrafficRouter {
    let mut router = MockTrafficRouter::new();
    router.expect_is_there().return_const(true);
    router.expect_lease().returning(|lease| {
        assert_eq!(lease, None, "routes of an only server do not expire");
        Ok(())
    });
    router
}

#[tokio::test(start_paused = true)]
async fn a_current_router_gets_all_routes_once_a_minute() {
    let mut router = a_router();
    router.expect_is_current().times(11).returning(|| Ok(true));
    router.expect_replace_all().times(2).returning(|_| Ok(()));
    let routes = routes_over(router);
    for _ in 0..=12 {
        assert_eq!(routes.confirm().await, Ok(()));
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_restarted_router_gets_all_routes() {
    let mut router = a_router();
    router.expect_is_current().times(2).returning(|| Ok(false));
    router.expect_replace_all().times(3).returning(|_| Ok(()));
    let routes = routes_over(router);
    for _ in 0..3 {
        assert_eq!(routes.confirm().await, Ok(()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_followed_by_all_routes() {
    let mut router = a_router();
    router.expect_is_current().never();
    router.expect_replace_all().times(2).returning(|_| Ok(()));
    router.expect_remove().times(1).returning(|_| Err(StepError::Retryable("away".to_owned())));
    let routes = routes_over(router);
    assert_eq!(routes.confirm().await, Ok(()));
    assert!(routes.follow(scope(), web().build().id).await.is_err());
    assert_eq!(routes.confirm().await, Ok(()));
}
