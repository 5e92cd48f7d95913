//! The records of an installation with one application.

use chrono::DateTime;
use launchway_database::Database;
use launchway_domain::{
    applications::{self, Application, ApplicationSecrets, Blueprint, BuildPack, Repository},
    audit::{self, Action, Author, Chain, Entry, Event, Resource},
    organizations::{self, Description, Organization},
    secret::Sealed,
    store::UnitOfWork as _,
    users::{self, User, UserKind},
};
use uuid::Uuid;

use crate::Outcome;

/// Stores an application, and returns it.
pub(crate) async fn insert_application(database: &Database) -> Outcome<Application> {
    let [organization_id, user_id, entry_id] = [1, 2, 3].map(Uuid::from_u128);
    let now = DateTime::UNIX_EPOCH;
    let user = User::new(user_id.into(), "Ada".parse()?, "ada@example.com".parse()?, UserKind::AppUser, now);
    let name = "Analytics".parse()?;
    let organization = Organization::new(organization_id.into(), name, Description::default(), now);
    let ids = (Uuid::from_u128(4).into(), Uuid::from_u128(6).into());
    let application = Application::new(ids, &organization, user.id, blueprint()?, secrets(), now);
    let author = Author {
        chain: Chain::Organization(organization.id),
        name: "Ada".to_owned(),
        user_id: Some(user.id),
        origin: None,
    };
    let event = Event::new(Action::Create, Resource::Organization, organization.id, "made it");
    let entry = Entry::new(entry_id.into(), author, event, now);
    let writes = vec![
        users::Write::Insert(user).into(),
        organizations::Write::Insert(organization).into(),
        applications::Write::Insert(Box::new(application.clone())).into(),
        audit::Write::Append(entry).into(),
    ];
    database.commit(writes).await?;
    Ok(application)
}

fn blueprint() -> Outcome<Blueprint> {
    Ok(Blueprint::new(
        "web".parse()?,
        "production".parse()?,
        BuildPack::Dockerfile,
        Repository::Git("https://git.example.com/web.git".to_owned().try_into()?),
        Some("main".parse()?),
        8080.try_into()?,
    ))
}

fn secrets() -> ApplicationSecrets {
    ApplicationSecrets {
        build_variables: Sealed(String::new()),
        environment_variables: Sealed(String::new()),
        credentials: None,
    }
}
