//! Readings that viewers of live pages share.

use std::{sync::Arc, time::Duration};

use launchway_application::{Error, Services, snapshots::Freshness};
use launchway_domain::{
    applications::{ApplicationFilter, ApplicationSummary},
    auth::Forbidden,
    deployments::{Deployment, DeploymentDetail},
    organizations::Role,
    page::{Page, PageRequest},
};
use launchway_testkit::builders::{
    a_deployment, a_page, a_profile, an_actor, an_application, an_organization,
};
use tokio::{task::JoinSet, time::advance};

use crate::ports::MockedPorts;

fn page() -> PageRequest {
    a_page(1, 20)
}

fn summary() -> ApplicationSummary {
    an_application().summary()
}

fn deployment() -> Deployment {
    a_deployment().of(&an_application().build()).build()
}

/// Services whose list is read so often.
fn listed(times: usize) -> Services {
    let mut ports = MockedPorts::default();
    ports
        .applications
        .expect_page()
        .times(times)
        .returning(|_, _, request| Ok(Page { items: vec![summary()], request, total: 1 }));
    ports.deployments.expect_newest().times(times).returning(|_, _| Ok(vec![deployment()]));
    ports.services()
}

#[tokio::test(start_paused = true)]
async fn fifty_viewers_cause_one_reading_a_second() {
    let services = Arc::new(listed(2));
    for _ in 0..2 {
        let mut viewers = JoinSet::new();
        for _ in 0..50 {
            let services = Arc::clone(&services);
            viewers.spawn(async move {
                let (actor, filter) = (an_actor().build(), ApplicationFilter::default());
                let found = services.snapshots.applications(&actor, &filter, page(), Freshness::Recent).await;
                let found = found.unwrap();
                (found.version, found.value.items[0].newest.is_some())
            });
        }
        let seen = viewers.join_all().await;
        assert_eq!(seen, vec![(0, true); 50], "nothing changed");
        advance(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn other_filters_pages_and_organizations_are_read_apart() {
    let services = listed(4);
    let other = an_organization().named("Compilers").build();
    let grace = an_actor().of(a_profile().member_of(&other, Role::Viewer).build()).build();
    let ada = an_actor().with_role(Role::Viewer).build();
    let search = ApplicationFilter { search: Some("web".to_owned()), ..ApplicationFilter::default() };
    let (all, second) = (ApplicationFilter::default(), a_page(2, 20));
    for _ in 0..2 {
        for (actor, filter, page) in
            [(&ada, &all, page()), (&ada, &search, page()), (&ada, &all, second), (&grace, &all, page())]
        {
            services.snapshots.applications(actor, filter, page, Freshness::Recent).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_opens_a_page_sees_what_is_stored_now() {
    let services = listed(2);
    let (actor, filter) = (an_actor().build(), ApplicationFilter::default());
    for _ in 0..2 {
        services.snapshots.applications(&actor, &filter, page(), Freshness::Now).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn details_are_shared_too() {
    let mut ports = MockedPorts::default();
    ports
        .applications
        .expect_detail()
        .once()
        .returning(|_, _| Ok(Some(an_application().detail(vec![deployment()], vec![]))));
    ports.deployments.expect_detail().once().returning(|_, _| {
        Ok(Some(DeploymentDetail { deployment: deployment(), application: summary(), logs: vec![] }))
    });
    let (services, actor) = (ports.services(), an_actor().build());
    let (application, deployment) = (an_application().build().id, deployment().id);
    for _ in 0..50 {
        services.snapshots.application(&actor, application, Freshness::Recent).await.unwrap();
        services.snapshots.deployment(&actor, deployment, Freshness::Recent).await.unwrap();
    }
}

#[tokio::test]
async fn what_does_not_exist_is_not_found() {
    let mut ports = MockedPorts::default();
    ports.applications.expect_detail().once().returning(|_, _| Ok(None));
    ports.deployments.expect_detail().once().returning(|_, _| Ok(None));
    let (services, actor) = (ports.services(), an_actor().build());
    let missing =
        services.snapshots.application(&actor, an_application().build().id, Freshness::Recent).await;
    assert!(matches!(missing, Err(Error::NotFound("the application"))));
    let missing = services.snapshots.deployment(&actor, deployment().id, Freshness::Recent).await;
    assert!(matches!(missing, Err(Error::NotFound("the deployment"))));
}

#[tokio::test]
async fn a_shared_reading_needs_the_permission_too() {
    let services = listed(1);
    let filter = ApplicationFilter::default();
    let snapshots = &services.snapshots;
    snapshots.applications(&an_actor().build(), &filter, page(), Freshness::Recent).await.unwrap();
    let nobody = an_actor().of(a_profile().build()).build();
    let refused = snapshots.applications(&nobody, &filter, page(), Freshness::Recent).await;
    assert!(matches!(refused, Err(Error::Forbidden(Forbidden::NoOrganization))));
}
