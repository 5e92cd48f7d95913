//! Contract of the tokens of code hosts, and of the statuses that are reported with them.

use launchway_database::{
    Database,
    tables::{SEALED, Tables},
};
use launchway_domain::{
    applications::Application,
    deployments::DeploymentState,
    previews::{
        CodeHostName, CodeHostToken, CommitStatus, Preview, PreviewRepository as _, PreviewState,
        StatusState, Write,
    },
    secret::Sealed,
    store::UnitOfWork as _,
    webhooks::CodeHost,
};

use crate::{
    applications::{delete, stored},
    builders::{Resident, at, commit, is_stale},
    deployments::{advance, bring_to_life, deploy},
    fresh::Fresh,
};

contract!(
    tokens_are_read_as_they_were_stored,
    tokens_of_others_are_not_seen,
    a_status_is_unreported_until_it_is_recorded,
    without_a_token_or_a_commit_nothing_is_reported,
    a_problem_is_recorded_and_cleared,
    tokens_are_known_to_the_rotation_of_keys,
);

const HEAD: &str = "ec26c3e57ca3a959ca5aad62de7213c562f8c821";

fn token_of(owner: &Resident, host: &str) -> CodeHostToken {
    CodeHostToken {
        organization: owner.organization.id,
        host: host.parse().unwrap(),
        api: "https://git.example.com/api".parse().ok(),
        token: Sealed(format!("sealed for {host}")),
        updated_at: at(1),
        problem: None,
    }
}

async fn set(db: &Database, token: &CodeHostToken) {
    commit(db, Write::SetToken(token.clone())).await.unwrap();
}

/// Stores the preview of request 7, which `running` runs.
async fn previewed(db: &Database, owner: &Resident, running: &Application, head: &str) -> Preview {
    let parent = stored(db, owner, "shop").await;
    let preview = Preview {
        parent: parent.id,
        number: 7.try_into().unwrap(),
        code_host: CodeHost::GitHub,
        application: Some(running.id),
        state: PreviewState::Active,
        branch: "feature".to_owned(),
        head: head.parse().ok(),
        is_from_fork: false,
        approved: None,
        expires_at: at(1000),
        created_at: at(0),
        updated_at: at(1),
    };
    let put = Write::Put { scope: owner.scope(), preview: preview.clone(), seen: None, most: 9 };
    commit(db, put).await.unwrap();
    preview
}

async fn unreported(db: &Database) -> Vec<StatusState> {
    db.unreported().await.unwrap().iter().map(|one| one.status.state).collect()
}

async fn record(db: &Database, preview: &Preview, state: StatusState) {
    let status = CommitStatus { commit: HEAD.parse().unwrap(), state };
    let write = Write::RecordStatus { parent: preview.parent, number: preview.number, status };
    db.commit(vec![write.into()]).await.unwrap();
}

async fn tokens_are_read_as_they_were_stored(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    assert_eq!(db.tokens(ada.scope()).await.unwrap(), []);
    let [github, gitlab] = ["github.com", "gitlab.com"].map(|host| token_of(&ada, host));
    set(&db, &gitlab).await;
    set(&db, &github).await;
    assert_eq!(db.tokens(ada.scope()).await.unwrap(), [github.clone(), gitlab.clone()]);
    let other = CodeHostToken { api: None, token: Sealed("another".to_owned()), updated_at: at(2), ..github };
    set(&db, &other).await;
    assert_eq!(db.tokens(ada.scope()).await.unwrap(), [other.clone(), gitlab.clone()]);
    let remove = || Write::RemoveToken { scope: ada.scope(), host: other.host.clone() };
    commit(&db, remove()).await.unwrap();
    assert_eq!(db.tokens(ada.scope()).await.unwrap(), [gitlab]);
    assert!(is_stale(&commit(&db, remove()).await));
}

async fn tokens_of_others_are_not_seen(db: Database) {
    let (ada, grace) = (Resident::of(&db, "ada").await, Resident::of(&db, "grace").await);
    set(&db, &token_of(&ada, "github.com")).await;
    assert_eq!(db.tokens(grace.scope()).await.unwrap(), []);
    let host: CodeHostName = "github.com".parse().unwrap();
    assert!(is_stale(&commit(&db, Write::RemoveToken { scope: grace.scope(), host }).await));
    // Neither is anything of theirs reported.
    let running = stored(&db, &grace, "pr-7-shop").await;
    previewed(&db, &grace, &running, HEAD).await;
    deploy(&db, &running, 1).await;
    assert_eq!(unreported(&db).await, []);
}

async fn a_status_is_unreported_until_it_is_recorded(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let running = stored(&db, &ada, "pr-7-shop").await;
    let preview = previewed(&db, &ada, &running, HEAD).await;
    let first = deploy(&db, &running, 1).await;
    set(&db, &token_of(&ada, "github.com")).await;
    let found = db.unreported().await.unwrap();
    let [one] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&one.preview, one.application.id), (&preview, running.id));
    assert_eq!((one.organization, one.parent.id), (ada.organization.id, preview.parent));
    assert_eq!(one.status, CommitStatus { commit: HEAD.parse().unwrap(), state: StatusState::Pending });

    record(&db, &preview, StatusState::Pending).await;
    assert_eq!(unreported(&db).await, []);
    bring_to_life(&db, first.id, 2).await;
    assert_eq!(unreported(&db).await, [StatusState::Success]);
    record(&db, &preview, StatusState::Success).await;
    let second = deploy(&db, &running, 2).await;
    assert_eq!(unreported(&db).await, [StatusState::Pending]);
    advance(&db, second.id, DeploymentState::Failed, 3).await.unwrap();
    assert_eq!(unreported(&db).await, [StatusState::Failure]);
    record(&db, &preview, StatusState::Failure).await;
    assert_eq!(unreported(&db).await, []);
    // Another token may be one with more permissions.
    set(&db, &token_of(&ada, "github.com")).await;
    assert_eq!(unreported(&db).await, [StatusState::Failure]);
    assert_eq!(db.of_request(ada.scope(), &[preview.parent], preview.number).await.unwrap(), [preview]);
}

async fn without_a_token_or_a_commit_nothing_is_reported(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let running = stored(&db, &ada, "pr-7-shop").await;
    previewed(&db, &ada, &running, "59b20b8d5c6f").await;
    set(&db, &token_of(&ada, "github.com")).await;
    assert_eq!(unreported(&db).await, [], "it was never deployed");
    deploy(&db, &running, 1).await;
    assert_eq!(unreported(&db).await, [], "its commit is not known");
    delete(&db, &running, 5).await.unwrap();
    assert_eq!(unreported(&db).await, []);
    record(&db, &Preview { application: None, ..previewed_elsewhere(&running) }, StatusState::Success).await;
}

/// A preview that is not stored.
fn previewed_elsewhere(parent: &Application) -> Preview {
    Preview {
        parent: parent.id,
        number: 9.try_into().unwrap(),
        code_host: CodeHost::GitHub,
        application: None,
        state: PreviewState::Waiting,
        branch: String::new(),
        head: None,
        is_from_fork: false,
        approved: None,
        expires_at: at(0),
        created_at: at(0),
        updated_at: at(0),
    }
}

async fn a_problem_is_recorded_and_cleared(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let token = token_of(&ada, "github.com");
    set(&db, &token).await;
    for problem in [Some("the code host answered 401".to_owned()), None] {
        let (organization, host) = (token.organization, token.host.clone());
        let write = Write::RecordProblem { organization, host, problem: problem.clone() };
        db.commit(vec![write.into()]).await.unwrap();
        assert_eq!(db.tokens(ada.scope()).await.unwrap(), [CodeHostToken { problem, ..token.clone() }]);
    }
}

async fn tokens_are_known_to_the_rotation_of_keys(fresh: &Fresh) {
    let ada = Resident::of(&fresh.database, "ada").await;
    let token = token_of(&ada, "github.com");
    set(&fresh.database, &token).await;
    let mut tables = Tables::to_change(&fresh.url()).unwrap();
    let column = SEALED.iter().find(|column| column.table == "code_host_tokens").unwrap();
    let mut places = Vec::new();
    let changed = tables.change_sealed(column, |place, _| {
        places.push(place.to_owned());
        Ok(None)
    });
    assert_eq!(changed.unwrap(), (1, 0));
    assert_eq!(places, [CodeHostToken::associated_data(token.organization, &token.host)]);
}
