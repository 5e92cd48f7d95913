//! Contract of `OrganizationRepository` and `organizations::Write`.

use launchway_database::Database;
use launchway_domain::{
    auth::{self, CredentialRepository as _, IdentityRepository as _},
    organizations::{
        Candidate, Member, Organization, OrganizationDetail, OrganizationRepository as _, Role, Scope, Write,
    },
    store::{Rule, StoreError, Unique},
    users::{self, User, UserRepository as _},
};
use tokio::task::JoinSet;

use crate::builders::{
    Resident, a_hash, a_membership, a_user, an_organization, at, commit, execute, id, is_stale,
};

contract!(
    an_organization_is_read_as_it_was_written,
    a_name_in_use_is_taken_in_any_case,
    the_name_of_a_deleted_organization_is_free_again,
    a_member_cannot_join_twice,
    a_member_who_left_can_join_again,
    nobody_joins_an_organization_that_is_gone,
    members_are_read_oldest_first_and_ties_by_id,
    deleted_users_and_members_who_left_are_not_read,
    an_organization_that_is_gone_is_not_read,
    who_is_no_member_is_not_found_as_one,
    an_account_is_unused_until_it_has_a_password_or_a_membership,
    an_update_changes_what_it_names_and_nothing_else,
    an_update_cannot_take_the_name_of_another,
    what_is_gone_is_not_updated_and_not_deleted_again,
    a_deleted_organization_has_no_members_and_no_tokens,
    another_role_is_read,
    who_is_no_member_gets_no_role_and_is_not_removed,
    the_last_admin_stays_one,
    a_deleted_user_is_no_admin,
    of_two_admins_who_demote_each_other_one_stays,
    of_two_admins_who_leave_at_once_one_stays,
    the_tokens_of_a_member_who_left_stay_void,
    joining_an_organization_while_it_is_deleted_has_no_effect,
);

fn change_role(home: &Resident, user: &User, role: Role) -> Write {
    Write::ChangeRole { scope: home.scope(), user_id: user.id, role, at: at(5) }
}

fn remove(home: &Resident, user: &User) -> Write {
    Write::RemoveMember { scope: home.scope(), user_id: user.id, at: at(5) }
}

fn update(home: &Resident, name: Option<&str>, description: Option<&str>) -> Write {
    Write::Update {
        scope: home.scope(),
        name: name.map(|name| name.parse().unwrap()),
        description: description.map(|text| text.parse().unwrap()),
        at: at(5),
    }
}

fn delete(home: &Resident) -> Write {
    Write::Delete { scope: home.scope(), at: at(5) }
}

/// A new member of that organization.
async fn joined(db: &Database, home: &Resident, name: &str, role: Role) -> User {
    let user = a_user(name);
    commit(db, users::Write::Insert(user.clone())).await.unwrap();
    let membership = a_membership(&home.organization, &user, role);
    commit(db, Write::InsertMembership(membership)).await.unwrap();
    user
}

async fn role_of(db: &Database, home: &Resident, user: &User) -> Option<Role> {
    db.member(home.scope(), user.id).await.unwrap().map(|member| member.membership.role)
}

async fn organization_of(db: &Database, home: &Resident) -> Organization {
    db.detail(home.scope()).await.unwrap().unwrap().organization
}

fn is_last_admin(outcome: &Result<(), StoreError>) -> bool {
    matches!(outcome, Err(StoreError::Refused(Rule::LastAdmin)))
}

async fn an_organization_is_read_as_it_was_written(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let read = db.profile(ada.user.id).await.unwrap().unwrap().memberships.remove(0);
    assert_eq!((read.organization, read.membership), (ada.organization, ada.membership));
}

async fn a_name_in_use_is_taken_in_any_case(db: Database) {
    commit(&db, Write::Insert(an_organization("Müller & Co"))).await.unwrap();
    let outcome = commit(&db, Write::Insert(an_organization("MÜLLER & CO"))).await;
    assert!(matches!(outcome, Err(StoreError::Taken(Unique::OrganizationName))), "{outcome:?}");
}

async fn the_name_of_a_deleted_organization_is_free_again(db: Database) {
    commit(&db, Write::Insert(an_organization("Acme"))).await.unwrap();
    execute(&db, "UPDATE organizations SET deleted_at = updated_at").await;
    let again = an_organization("Acme");
    commit(&db, Write::Insert(again.clone())).await.unwrap();
    commit(&db, Write::Delete { scope: Scope::of_record(again.id), at: at(1) }).await.unwrap();
    commit(&db, Write::Insert(an_organization("ACME"))).await.unwrap();
}

async fn a_member_cannot_join_twice(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let again = a_membership(&ada.organization, &ada.user, Role::Viewer);
    let outcome = commit(&db, Write::InsertMembership(again)).await;
    assert!(matches!(outcome, Err(StoreError::Taken(Unique::Membership))), "{outcome:?}");
}

async fn a_member_who_left_can_join_again(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let grace = joined(&db, &ada, "grace", Role::Member).await;
    commit(&db, remove(&ada, &grace)).await.unwrap();
    let again = a_membership(&ada.organization, &grace, Role::Viewer);
    commit(&db, Write::InsertMembership(again.clone())).await.unwrap();
    let member = db.member(ada.scope(), grace.id).await.unwrap();
    assert_eq!(member, Some(Member { membership: again, user: grace }));
}

async fn nobody_joins_an_organization_that_is_gone(db: Database) {
    let (ada, grace) = (Resident::of(&db, "ada").await, a_user("grace"));
    commit(&db, users::Write::Insert(grace.clone())).await.unwrap();
    commit(&db, delete(&ada)).await.unwrap();
    let join = |home| Write::InsertMembership(a_membership(home, &grace, Role::Member));
    assert!(is_stale(&commit(&db, join(&ada.organization)).await));
    assert!(is_stale(&commit(&db, join(&an_organization("Never made"))).await));
}

async fn members_are_read_oldest_first_and_ties_by_id(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    Resident::of(&db, "stranger").await;
    let [first, second, oldest] = ["first", "second", "oldest"].map(a_user);
    let mut tied = [&first, &second].map(|user| Member {
        membership: a_membership(&ada.organization, user, Role::Viewer),
        user: user.clone(),
    });
    tied.sort_by_key(|member| member.membership.id);
    let mut membership = a_membership(&ada.organization, &oldest, Role::Member);
    membership.created_at = at(-10);
    let oldest = Member { membership, user: oldest };
    let [one, two] = tied;
    for member in [&two, &one, &oldest] {
        commit(&db, users::Write::Insert(member.user.clone())).await.unwrap();
        commit(&db, Write::InsertMembership(member.membership.clone())).await.unwrap();
    }
    let scope = ada.scope();
    let own = Member { membership: ada.membership, user: ada.user };
    let members = vec![oldest, own, one, two];
    let expected = OrganizationDetail { organization: ada.organization, members };
    assert_eq!(db.detail(scope).await.unwrap(), Some(expected));
}

async fn deleted_users_and_members_who_left_are_not_read(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let grace = joined(&db, &ada, "grace", Role::Member).await;
    let linus = joined(&db, &ada, "linus", Role::Member).await;
    commit(&db, remove(&ada, &grace)).await.unwrap();
    execute(&db, "UPDATE users SET deleted_at = updated_at WHERE username = 'linus'").await;
    let members = db.detail(ada.scope()).await.unwrap().unwrap().members;
    assert_eq!(members.iter().map(|member| &member.user).collect::<Vec<_>>(), [&ada.user]);
    assert_eq!(role_of(&db, &ada, &grace).await, None);
    assert_eq!(role_of(&db, &ada, &linus).await, None);
}

async fn an_organization_that_is_gone_is_not_read(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    assert_eq!(db.detail(Scope::of_record(id())).await.unwrap(), None);
    execute(&db, "UPDATE organizations SET deleted_at = updated_at").await;
    assert_eq!(db.detail(ada.scope()).await.unwrap(), None);
    assert_eq!(db.member(ada.scope(), ada.user.id).await.unwrap(), None);
}

async fn who_is_no_member_is_not_found_as_one(db: Database) {
    let (ada, grace) = (Resident::of(&db, "ada").await, Resident::of(&db, "grace").await);
    let own = Member { membership: ada.membership.clone(), user: ada.user.clone() };
    assert_eq!(db.member(ada.scope(), ada.user.id).await.unwrap(), Some(own));
    assert_eq!(db.member(ada.scope(), grace.user.id).await.unwrap(), None);
    assert_eq!(db.member(ada.scope(), id()).await.unwrap(), None);
}

async fn an_account_is_unused_until_it_has_a_password_or_a_membership(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let (grace, jurgen) = (a_user("grace"), a_user("jürgen"));
    for user in [&grace, &jurgen] {
        commit(&db, users::Write::Insert(user.clone())).await.unwrap();
    }
    let candidate = async |email: &str| db.candidate(&email.parse().unwrap()).await.unwrap();
    let found = |user: &User, is_unused| Some(Candidate { user: user.clone(), is_unused });
    assert_eq!(candidate("nobody@example.com").await, None);
    assert_eq!(candidate("ada@example.com").await, found(&ada.user, false));
    assert_eq!(candidate("JÜRGEN@example.COM").await, found(&jurgen, true));

    let membership = a_membership(&ada.organization, &grace, Role::Viewer);
    commit(&db, Write::InsertMembership(membership)).await.unwrap();
    assert_eq!(candidate("grace@example.com").await, found(&grace, false));
    commit(&db, remove(&ada, &grace)).await.unwrap();
    assert_eq!(candidate("grace@example.com").await, found(&grace, true));
    let password = auth::Write::SetPassword { user_id: grace.id, hash: a_hash("one"), at: at(1) };
    commit(&db, password).await.unwrap();
    assert_eq!(candidate("grace@example.com").await, found(&grace, false));

    execute(&db, "UPDATE users SET deleted_at = updated_at").await;
    assert_eq!(candidate("grace@example.com").await, None);
}

async fn an_update_changes_what_it_names_and_nothing_else(db: Database) {
    let (ada, grace) = (Resident::of(&db, "ada").await, Resident::of(&db, "grace").await);
    let mut expected = Organization { updated_at: at(5), ..ada.organization.clone() };
    commit(&db, update(&ada, Some("Analytical Engines"), None)).await.unwrap();
    expected.name = "Analytical Engines".parse().unwrap();
    assert_eq!(organization_of(&db, &ada).await, expected);
    commit(&db, update(&ada, None, Some(""))).await.unwrap();
    expected.description = "".parse().unwrap();
    assert_eq!(organization_of(&db, &ada).await, expected);
    assert_eq!(organization_of(&db, &grace).await, grace.organization);
}

async fn an_update_cannot_take_the_name_of_another(db: Database) {
    let (ada, grace) = (Resident::of(&db, "ada").await, Resident::of(&db, "grace").await);
    let outcome = commit(&db, update(&ada, Some("GRACE'S TEAM"), None)).await;
    assert!(matches!(outcome, Err(StoreError::Taken(Unique::OrganizationName))), "{outcome:?}");
    // Its own name in another case is not another's.
    commit(&db, update(&grace, Some("GRACE'S TEAM"), None)).await.unwrap();
    assert_eq!(organization_of(&db, &grace).await.name.as_str(), "GRACE'S TEAM");
}

async fn what_is_gone_is_not_updated_and_not_deleted_again(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    commit(&db, delete(&ada)).await.unwrap();
    assert!(is_stale(&commit(&db, delete(&ada)).await));
    assert!(is_stale(&commit(&db, update(&ada, Some("Other"), None)).await));
    assert!(is_stale(&commit(&db, change_role(&ada, &ada.user, Role::Admin)).await));
    assert!(is_stale(&commit(&db, remove(&ada, &ada.user)).await));
    assert!(is_stale(&commit(&db, delete(&Resident::called("grace"))).await));
}

async fn a_deleted_organization_has_no_members_and_no_tokens(db: Database) {
    let (ada, grace) = (Resident::of(&db, "ada").await, Resident::of(&db, "grace").await);
    let [own, other] = [ada.issue(&db, "ci").await, grace.issue(&db, "ci").await];
    commit(&db, delete(&ada)).await.unwrap();
    assert_eq!(db.detail(ada.scope()).await.unwrap(), None);
    assert_eq!(db.profile(ada.user.id).await.unwrap().unwrap().memberships, []);
    assert_eq!(db.api_tokens(ada.scope(), ada.user.id).await.unwrap(), []);
    assert_eq!(db.by_token(&own.token_hash).await.unwrap(), None);
    assert!(db.candidate(&ada.user.email).await.unwrap().unwrap().is_unused);

    assert!(db.by_token(&other.token_hash).await.unwrap().is_some());
    assert_eq!(role_of(&db, &grace, &grace.user).await, Some(Role::Admin));
}

async fn another_role_is_read(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let grace = joined(&db, &ada, "grace", Role::Viewer).await;
    commit(&db, change_role(&ada, &grace, Role::Member)).await.unwrap();
    let membership = db.member(ada.scope(), grace.id).await.unwrap().unwrap().membership;
    assert_eq!((membership.role, membership.updated_at), (Role::Member, at(5)));
    assert_eq!(role_of(&db, &ada, &ada.user).await, Some(Role::Admin));
}

async fn who_is_no_member_gets_no_role_and_is_not_removed(db: Database) {
    let (ada, grace) = (Resident::of(&db, "ada").await, Resident::of(&db, "grace").await);
    assert!(is_stale(&commit(&db, change_role(&ada, &grace.user, Role::Admin)).await));
    assert!(is_stale(&commit(&db, remove(&ada, &grace.user)).await));
    let linus = joined(&db, &ada, "linus", Role::Member).await;
    commit(&db, remove(&ada, &linus)).await.unwrap();
    assert!(is_stale(&commit(&db, change_role(&ada, &linus, Role::Admin)).await));
    assert!(is_stale(&commit(&db, remove(&ada, &linus)).await));
    assert_eq!(role_of(&db, &grace, &grace.user).await, Some(Role::Admin));
}

async fn the_last_admin_stays_one(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    Resident::of(&db, "stranger").await;
    let grace = joined(&db, &ada, "grace", Role::Member).await;
    for write in [
        change_role(&ada, &ada.user, Role::Member),
        change_role(&ada, &ada.user, Role::Viewer),
        remove(&ada, &ada.user),
    ] {
        let outcome = commit(&db, write).await;
        assert!(is_last_admin(&outcome), "{outcome:?}");
        assert_eq!(role_of(&db, &ada, &ada.user).await, Some(Role::Admin));
    }
    commit(&db, change_role(&ada, &ada.user, Role::Admin)).await.unwrap();
    commit(&db, change_role(&ada, &grace, Role::Admin)).await.unwrap();
    commit(&db, remove(&ada, &ada.user)).await.unwrap();
    assert!(is_last_admin(&commit(&db, remove(&ada, &grace)).await));
}

async fn a_deleted_user_is_no_admin(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    joined(&db, &ada, "grace", Role::Admin).await;
    execute(&db, "UPDATE users SET deleted_at = updated_at WHERE username = 'grace'").await;
    assert!(is_last_admin(&commit(&db, remove(&ada, &ada.user)).await));
}

/// Runs both concurrently: exactly one succeeds, and the other one fails with the reason.
async fn race(db: &Database, writes: [Write; 2]) {
    let mut tasks = JoinSet::new();
    for write in writes {
        let db = db.clone();
        tasks.spawn(async move { commit(&db, write).await });
    }
    let outcomes = tasks.join_all().await;
    let fine = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    let refused = outcomes.iter().filter(|outcome| is_last_admin(outcome)).count();
    assert_eq!((fine, refused), (1, 1), "{outcomes:?}");
}

async fn of_two_admins_who_demote_each_other_one_stays(db: Database) {
    for round in 0..10 {
        let ada = Resident::of(&db, &format!("ada{round}")).await;
        let grace = joined(&db, &ada, &format!("grace{round}"), Role::Admin).await;
        race(&db, [&ada.user, &grace].map(|user| change_role(&ada, user, Role::Member))).await;
        let roles = [role_of(&db, &ada, &ada.user).await, role_of(&db, &ada, &grace).await];
        assert!(roles.contains(&Some(Role::Admin)) && roles.contains(&Some(Role::Member)), "{roles:?}");
    }
}

async fn of_two_admins_who_leave_at_once_one_stays(db: Database) {
    for round in 0..10 {
        let ada = Resident::of(&db, &format!("ada{round}")).await;
        let grace = joined(&db, &ada, &format!("grace{round}"), Role::Admin).await;
        race(&db, [remove(&ada, &ada.user), remove(&ada, &grace)]).await;
        assert_eq!(db.detail(ada.scope()).await.unwrap().unwrap().members.len(), 1);
    }
}

async fn the_tokens_of_a_member_who_left_stay_void(db: Database) {
    let (ada, mut grace) = (Resident::of(&db, "ada").await, Resident::of(&db, "grace").await);
    let elsewhere = grace.issue(&db, "ci").await;
    let membership = a_membership(&ada.organization, &grace.user, Role::Member);
    commit(&db, Write::InsertMembership(membership)).await.unwrap();
    let home = std::mem::replace(&mut grace.organization, ada.organization.clone());
    let [token, adas] = [grace.issue(&db, "ci").await, ada.issue(&db, "ci").await];
    assert!(db.by_token(&token.token_hash).await.unwrap().is_some());

    commit(&db, remove(&ada, &grace.user)).await.unwrap();
    assert_eq!(db.by_token(&token.token_hash).await.unwrap(), None);
    let again = a_membership(&ada.organization, &grace.user, Role::Admin);
    commit(&db, Write::InsertMembership(again)).await.unwrap();
    assert_eq!(db.by_token(&token.token_hash).await.unwrap(), None);
    assert_eq!(db.api_tokens(ada.scope(), grace.user.id).await.unwrap(), []);

    // Neither others' tokens nor those for other organizations are touched.
    assert!(db.by_token(&adas.token_hash).await.unwrap().is_some());
    assert_eq!(db.api_tokens(Scope::of_record(home.id), grace.user.id).await.unwrap(), [elsewhere]);
}

async fn joining_an_organization_while_it_is_deleted_has_no_effect(db: Database) {
    let grace = a_user("grace");
    commit(&db, users::Write::Insert(grace.clone())).await.unwrap();
    for round in 0..10 {
        let ada = Resident::of(&db, &format!("ada{round}")).await;
        let join = Write::InsertMembership(a_membership(&ada.organization, &grace, Role::Member));
        let (joined, deleted) = tokio::join!(commit(&db, join), commit(&db, delete(&ada)));
        deleted.unwrap();
        assert!(joined.is_ok() || is_stale(&joined), "{joined:?}");
        assert!(db.candidate(&grace.email).await.unwrap().unwrap().is_unused);
    }
}
