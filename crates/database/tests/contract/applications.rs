//! Contract of `ApplicationRepository` and its writes.

mod changes;
mod concurrency;
pub(crate) mod domains;
mod hosts;
mod pages;
mod states;

use launchway_database::Database;
use launchway_domain::{
    applications::{
        Application, ApplicationDetail, ApplicationRepository, ApplicationSecrets, ApplicationState,
        CopyCount, Health, Labels, Port, ProxyServer, Write,
    },
    ids::ApplicationId,
    organizations::{self, Scope},
    secret::Sealed,
    store::{Rule, StoreError, Unique},
};
use launchway_testkit::builders::{
    ApplicationBuilder, a_blueprint, a_container, a_deployment, a_log_line, an_application, parsed,
};
use tokio::task::JoinSet;

pub(crate) use self::{pages::searched, states::set_stopped};
use crate::{
    builders::{Resident, at, commit, execute, id, is_stale},
    deployments::{deploy, insert_deployment},
    logs::append,
};

contract!(
    an_application_is_read_as_it_was_made,
    an_application_is_changed_as_a_whole,
    the_number_of_copies_is_changed,
    the_watched_paths_are_changed,
    the_reason_of_a_degraded_application_is_shown,
    a_change_to_what_was_changed_meanwhile_is_refused,
    a_name_is_taken_once_in_an_organization_and_environment,
    of_two_who_take_a_name_at_once_one_gets_it,
    a_domain_is_taken_once_in_the_installation,
    a_change_that_takes_what_others_have_is_refused,
    deleting_an_application_frees_its_name_and_domain,
    what_is_gone_or_of_others_is_not_changed,
    nobody_makes_an_application_for_an_organization_that_is_gone,
    an_organization_that_has_applications_stays,
    creating_an_application_conflicts_with_deleting_its_owner,
    an_application_is_seen_with_everything_around_it,
    an_application_outlives_who_made_it,
);

/// The application "web" of that user's organization, created at time zero.
pub(crate) fn an_application_of(resident: &Resident) -> ApplicationBuilder {
    an_application().in_organization(&resident.organization).made_by(&resident.user).created_at(at(0))
}

pub(crate) async fn insert(db: &Database, application: &Application) -> Result<(), StoreError> {
    commit(db, Write::Insert(Box::new(application.clone()))).await
}

/// A stored application of that user's organization.
pub(crate) async fn stored(db: &Database, resident: &Resident, name: &str) -> Application {
    let application = an_application_of(resident).named(name).build();
    insert(db, &application).await.unwrap();
    application
}

pub(crate) async fn get(db: &Database, scope: Scope, id: ApplicationId) -> Option<Application> {
    ApplicationRepository::get(db, scope, id).await.unwrap()
}

async fn detail(db: &Database, scope: Scope, id: ApplicationId) -> Option<ApplicationDetail> {
    ApplicationRepository::detail(db, scope, id).await.unwrap()
}

/// Returns the application as it is stored now.
pub(crate) async fn again(db: &Database, application: &Application) -> Application {
    get(db, Scope::of_record(application.organization_id), application.id).await.unwrap()
}

pub(crate) async fn delete(db: &Database, application: &Application, seconds: i64) -> Result<(), StoreError> {
    let scope = Scope::of_record(application.organization_id);
    commit(db, Write::Delete { scope, id: application.id, at: at(seconds) }).await
}

fn update(application: &Application) -> Write {
    Write::Update {
        scope: Scope::of_record(application.organization_id),
        id: application.id,
        seen: None,
        blueprint: Box::new(application.blueprint.clone()),
        secrets: application.secrets.clone(),
        at: at(5),
    }
}

pub(crate) fn is_taken(outcome: &Result<(), StoreError>, expected: Unique) -> bool {
    matches!(outcome, Err(StoreError::Taken(unique)) if *unique == expected)
}

/// An application with all optional values.
fn a_full_one(resident: &Resident) -> Application {
    let mut blueprint = a_blueprint();
    blueprint.base_path = parsed("/apps/web");
    blueprint.dockerfile_path = parsed("docker/web.Dockerfile");
    blueprint.domain = Some(parsed("web.example.com"));
    blueprint.port = Port::try_from(65_535).unwrap();
    blueprint.pre_run_command = Some(parsed("echo \"before\" 'it' \\ 🚀"));
    blueprint.post_run_command = Some(parsed(" echo\nafter "));
    blueprint.proxy_server = ProxyServer::Caddy;
    let labels = ["one", "Zwei \"2\"", "ü🚀", "one"].map(str::to_owned).to_vec();
    blueprint.labels = Labels::try_from(labels).unwrap();
    blueprint.health_check_path = Some(parsed("/health?deep=1"));
    blueprint.auto_deploy = false;
    blueprint.copies = CopyCount::try_from(100).unwrap();
    blueprint.watch_paths = vec!["apps/web/".to_owned(), "*.toml".to_owned()].try_into().unwrap();
    let secrets = ApplicationSecrets {
        build_variables: Sealed("build".to_owned()),
        environment_variables: Sealed("environment".to_owned()),
        credentials: Some(Sealed("credentials".to_owned())),
    };
    an_application_of(resident).with_blueprint(blueprint).with_secrets(secrets).build()
}

async fn an_application_is_read_as_it_was_made(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let image = an_application_of(&ada).named("proxy").from_image("nginx:1.27").build();
    for application in [a_full_one(&ada), an_application_of(&ada).named("bare").build(), image] {
        insert(&db, &application).await.unwrap();
        assert_eq!(get(&db, ada.scope(), application.id).await.unwrap(), application);
    }
    assert_eq!(get(&db, ada.scope(), id()).await, None);
}

async fn an_application_is_changed_as_a_whole(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let (full, mut bare) = (a_full_one(&ada), an_application_of(&ada).build());
    assert_eq!(full.id, bare.id);
    insert(&db, &bare).await.unwrap();
    bare.updated_at = at(5);
    let full = Application { updated_at: at(5), ..full };
    for application in [full, bare] {
        commit(&db, update(&application)).await.unwrap();
        assert_eq!(again(&db, &application).await, application);
    }
}

async fn a_change_to_what_was_changed_meanwhile_is_refused(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let web = stored(&db, &ada, "web").await;
    let knowing = |application: &Application, known| match update(application) {
        Write::Update { scope, id, blueprint, secrets, at, .. } => {
            Write::Update { scope, id, seen: Some(known), blueprint, secrets, at }
        }
        other => other,
    };
    let mut shop = web.clone();
    shop.blueprint.name = parsed("shop");
    assert!(is_stale(&commit(&db, knowing(&shop, at(1))).await));
    assert_eq!(again(&db, &web).await, web);
    commit(&db, knowing(&shop, web.updated_at)).await.unwrap();
    assert!(is_stale(&commit(&db, knowing(&web, web.updated_at)).await));
    assert_eq!(again(&db, &web).await.blueprint.name, shop.blueprint.name);
    commit(&db, knowing(&web, at(5))).await.unwrap();
}

async fn the_number_of_copies_is_changed(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let mut web = stored(&db, &ada, "web").await;
    for count in [3, 5, 1, 1, 100] {
        web.blueprint.copies = CopyCount::try_from(count).unwrap();
        commit(&db, update(&web)).await.unwrap();
        assert_eq!(again(&db, &web).await.blueprint, web.blueprint, "{count}");
    }
}

async fn the_watched_paths_are_changed(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let mut web = stored(&db, &ada, "web").await;
    let long = vec!["ä".repeat(127); 100];
    for patterns in [vec![], vec!["/*".to_owned(), "!\\#\"docs'/".to_owned()], long, vec![], vec![]] {
        web.blueprint.watch_paths = patterns.clone().try_into().unwrap();
        commit(&db, update(&web)).await.unwrap();
        assert_eq!(again(&db, &web).await.blueprint, web.blueprint, "{patterns:?}");
    }
}

async fn the_reason_of_a_degraded_application_is_shown(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let mut web = stored(&db, &ada, "web").await;
    let deployment = deploy(&db, &web, 1).await;
    crate::deployments::bring_to_life(&db, deployment.id, 2).await;
    let mark = async |health| {
        let write = Write::SetHealth { deployment: deployment.id, health, at: at(3) };
        commit(&db, write).await.unwrap();
        let shown = detail(&db, ada.scope(), web.id).await.unwrap().summary;
        (shown.application.status.state, shown.breakdown)
    };
    let degraded = || Health::Degraded("1 of 2 copies serve".to_owned());
    assert_eq!(mark(degraded()).await, (ApplicationState::Running, None), "it has no copies");
    web.blueprint.copies = CopyCount::try_from(2).unwrap();
    commit(&db, update(&web)).await.unwrap();
    let reason = Some("1 of 2 copies serve".to_owned());
    assert_eq!(mark(degraded()).await, (ApplicationState::Running, reason));
    assert_eq!(mark(Health::Healthy).await, (ApplicationState::Running, None));
}

async fn a_name_is_taken_once_in_an_organization_and_environment(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    stored(&db, &ada, "web").await;
    let same = Application { id: id(), ..an_application_of(&ada).build() };
    assert!(is_taken(&insert(&db, &same).await, Unique::ApplicationName));
    assert_eq!(get(&db, ada.scope(), same.id).await, None);
    for other in [
        an_application_of(&ada).named("Web"),
        an_application_of(&ada).in_environment("staging"),
        an_application_of(&bob),
    ] {
        insert(&db, &other.build()).await.unwrap();
    }
}

async fn of_two_who_take_a_name_at_once_one_gets_it(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    for round in 0..5 {
        let name = format!("web {round}");
        let mut tasks = JoinSet::new();
        for _ in 0..4 {
            let application = Application { id: id(), ..an_application_of(&ada).named(&name).build() };
            let db = db.clone();
            tasks.spawn(async move { insert(&db, &application).await });
        }
        let outcomes = tasks.join_all().await;
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
        let taken = outcomes.iter().filter(|outcome| is_taken(outcome, Unique::ApplicationName));
        assert_eq!(taken.count(), 3, "{outcomes:?}");
    }
}

async fn a_domain_is_taken_once_in_the_installation(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    insert(&db, &an_application_of(&ada).at_domain("web.example.com").build()).await.unwrap();
    let same = an_application_of(&bob).at_domain("web.example.com").build();
    assert!(is_taken(&insert(&db, &same).await, Unique::Domain));
    insert(&db, &an_application_of(&bob).at_domain("www.example.com").build()).await.unwrap();
    // Any number have none.
    stored(&db, &ada, "one").await;
    stored(&db, &ada, "two").await;
}

async fn a_change_that_takes_what_others_have_is_refused(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    insert(&db, &an_application_of(&ada).at_domain("web.example.com").build()).await.unwrap();
    let api = stored(&db, &ada, "api").await;
    let mut renamed = api.clone();
    renamed.blueprint.name = parsed("web");
    assert!(is_taken(&commit(&db, update(&renamed)).await, Unique::ApplicationName));
    let mut moved = api.clone();
    moved.blueprint.domain = Some(parsed("web.example.com"));
    assert!(is_taken(&commit(&db, update(&moved)).await, Unique::Domain));
    assert_eq!(again(&db, &api).await, api);
}

async fn deleting_an_application_frees_its_name_and_domain(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let first = an_application_of(&ada).at_domain("web.example.com").build();
    insert(&db, &first).await.unwrap();
    delete(&db, &first, 1).await.unwrap();
    assert_eq!(get(&db, ada.scope(), first.id).await, None);
    assert_eq!(detail(&db, ada.scope(), first.id).await, None);
    assert_eq!(pages::names(&db, ada.scope()).await, [""; 0]);
    let second = Application { id: id(), ..first };
    insert(&db, &second).await.unwrap();
    assert_eq!(again(&db, &second).await, second);
}

async fn what_is_gone_or_of_others_is_not_changed(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let there = stored(&db, &ada, "web").await;
    let gone = stored(&db, &ada, "gone").await;
    delete(&db, &gone, 1).await.unwrap();
    let foreign = Application { organization_id: bob.organization.id, ..there.clone() };
    let unknown = Application { id: id(), ..there.clone() };
    for application in [gone, foreign, unknown] {
        assert!(is_stale(&commit(&db, update(&application)).await));
        assert!(is_stale(&delete(&db, &application, 2).await));
        let scope = Scope::of_record(application.organization_id);
        assert_eq!(get(&db, scope, application.id).await, None);
        assert_eq!(detail(&db, scope, application.id).await, None);
    }
    assert_eq!(again(&db, &there).await, there);
}

async fn nobody_makes_an_application_for_an_organization_that_is_gone(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    commit(&db, organizations::Write::Delete { scope: ada.scope(), at: at(1) }).await.unwrap();
    assert!(is_stale(&insert(&db, &an_application_of(&ada).build()).await));
    let mut nowhere = an_application_of(&ada).build();
    nowhere.organization_id = id();
    assert!(is_stale(&insert(&db, &nowhere).await));
}

fn is_refused(outcome: &Result<(), StoreError>) -> bool {
    matches!(outcome, Err(StoreError::Refused(Rule::HasApplications)))
}

async fn an_organization_that_has_applications_stays(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let end = || organizations::Write::Delete { scope: ada.scope(), at: at(1) };
    let application = stored(&db, &ada, "web").await;
    assert!(is_refused(&commit(&db, end()).await));
    assert_eq!(again(&db, &application).await, application);
    delete(&db, &application, 1).await.unwrap();
    commit(&db, end()).await.unwrap();
    assert!(is_stale(&commit(&db, end()).await));
}

async fn creating_an_application_conflicts_with_deleting_its_owner(db: Database) {
    for round in 0..10 {
        let ada = Resident::of(&db, &format!("ada{round}")).await;
        let application = an_application_of(&ada).build();
        let end = organizations::Write::Delete { scope: ada.scope(), at: at(1) };
        let (made, ended) = tokio::join!(insert(&db, &application), commit(&db, end));
        assert!(made.is_ok() != ended.is_ok(), "{made:?} {ended:?}");
        assert!(is_stale(&made) || is_refused(&ended), "{made:?} {ended:?}");
    }
}

async fn an_application_is_seen_with_everything_around_it(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let application = stored(&db, &ada, "web").await;
    let other = stored(&db, &ada, "other").await;
    let mut expected = Vec::new();
    for number in 1..=21 {
        let deployment = a_deployment().of(&application).numbered(number).created_at(at(number.into()));
        expected.push(insert_deployment(&db, &deployment.run_by(a_container("web")).build()).await);
    }
    let elsewhere = deploy(&db, &other, 1).await;
    append(&db, vec![a_log_line().of(&elsewhere).new_line()]).await;
    let line = |number| a_log_line().of(&expected[0]).numbered(number).saying(&number.to_string());
    append(&db, (1..=101).map(|number| line(number).new_line()).collect()).await;
    let lines: Vec<_> = (2..=101).map(|number| line(number).build()).collect();
    expected.reverse();
    expected.truncate(20);
    let seen = detail(&db, ada.scope(), application.id).await.unwrap();
    assert_eq!(seen.summary.application, again(&db, &application).await);
    assert_eq!((seen.summary.organization, seen.summary.user), (ada.organization, ada.user));
    assert_eq!(seen.deployments, expected);
    assert_eq!(seen.logs, lines);
}

async fn an_application_outlives_who_made_it(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let application = stored(&db, &ada, "web").await;
    execute(&db, "UPDATE users SET deleted_at = created_at").await;
    assert!(detail(&db, ada.scope(), application.id).await.is_some());
    assert_eq!(pages::names(&db, ada.scope()).await, ["web"]);
}
