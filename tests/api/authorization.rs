//! Authorization: every operation of the document, called by every kind of caller.

mod callers;
mod request;

use launchway_domain::organizations::Role;
use launchway_testkit::server::TestServer;
use serde_json::Value;

use self::{
    callers::{Callers, Who},
    request::Request,
};
use crate::openapi::{Documented, operations, printed_document};

super::on_both_databases!(
    every_operation_answers_everyone_as_it_declares,
    only_an_admin_deletes_the_organization,
);

/// The decision about a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    Unauthenticated,
    Forbidden,
    Allowed,
}

/// The decisions that do not follow from the permission of the operation.
const EXCEPTIONS: &[(&str, Who, Decision)] = &[
    // Tokens belong to an organization.
    ("POST /api/v1/auth/tokens", Who::RemovedMember, Decision::Forbidden),
    ("DELETE /api/v1/auth/tokens/{id}", Who::RemovedMember, Decision::Forbidden),
    // Members may leave; only admins may remove others.
    ("DELETE /api/v1/organizations/users", Who::Viewer, Decision::Forbidden),
    ("DELETE /api/v1/organizations/users", Who::Member, Decision::Forbidden),
    ("DELETE /api/v1/organizations/users", Who::RemovedMember, Decision::Forbidden),
    // Only administrators of the installation see its servers.
    ("GET /api/v1/cluster", Who::Viewer, Decision::Forbidden),
    ("GET /api/v1/cluster/nodes", Who::Viewer, Decision::Forbidden),
    ("GET /api/v1/cluster", Who::Member, Decision::Forbidden),
    ("GET /api/v1/cluster/nodes", Who::Member, Decision::Forbidden),
    ("GET /api/v1/cluster", Who::Admin, Decision::Forbidden),
    ("GET /api/v1/cluster/nodes", Who::Admin, Decision::Forbidden),
    ("GET /api/v1/cluster", Who::RemovedMember, Decision::Forbidden),
    ("GET /api/v1/cluster/nodes", Who::RemovedMember, Decision::Forbidden),
    // An organization that the caller is not a member of is not found, and the request names none.
    ("DELETE /api/v1/organizations", Who::Viewer, Decision::Allowed),
    ("DELETE /api/v1/organizations", Who::Member, Decision::Allowed),
    ("DELETE /api/v1/organizations", Who::RemovedMember, Decision::Allowed),
];

fn every_operation_answers_everyone_as_it_declares(server: TestServer) {
    let callers = Callers::new(&server);
    let document = printed_document();
    let mut problems = Vec::new();
    for operation in operations(&document) {
        for who in Who::ALL {
            let answer = callers.send(who, &Request::new(&document, &operation));
            let body: Value = serde_json::from_str(&answer.text).unwrap_or_default();
            let (name, code) = (operation.name(), body["error"].as_str().unwrap_or_default());
            let decision = match code {
                "unauthenticated" => Decision::Unauthenticated,
                "forbidden" => Decision::Forbidden,
                _ => Decision::Allowed,
            };
            let expected = expected(&operation, who);
            if decision != expected {
                problems.push(format!("{name} by {who:?}: expected {expected:?}, got {}", answer.text));
            }
            if !operation.declares(answer.status, code) {
                problems.push(format!("{name} does not declare {} `{code}`", answer.status));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn only_an_admin_deletes_the_organization(server: TestServer) {
    let callers = Callers::new(&server);
    let path = format!("/api/v1/organizations?id={}", callers.organization());
    let request = Request { method: "DELETE".to_owned(), path, body: None };
    for (who, status, code) in [
        (Who::Nobody, 401, "unauthenticated"),
        (Who::ExpiredToken, 401, "unauthenticated"),
        (Who::ForeignAdmin, 403, "forbidden"),
        (Who::Viewer, 403, "forbidden"),
        (Who::Member, 403, "forbidden"),
        (Who::RemovedMember, 404, "not_found"),
    ] {
        callers.send(who, &request).failure(status, code);
    }
    // Nobody deletes their only organization.
    callers.send(Who::Admin, &request).failure(409, "conflict");
    let (method, path) = ("POST".to_owned(), "/api/v1/organizations".to_owned());
    let another = Request { method, path, body: Some(r#"{"name": "Another"}"#.to_owned()) };
    callers.send(Who::Admin, &another).success();
    callers.send(Who::Admin, &request).success();
}

/// Returns the decision that follows from the declaration of the operation.
fn expected(operation: &Documented, who: Who) -> Decision {
    let exception = EXCEPTIONS.iter().find(|(name, whom, _)| *name == operation.name() && *whom == who);
    if let Some((.., decision)) = exception {
        return *decision;
    }
    if !operation.is_guarded() {
        return Decision::Allowed;
    }
    let role = match who {
        Who::Nobody | Who::ExpiredToken => return Decision::Unauthenticated,
        Who::ForeignAdmin => return Decision::Forbidden,
        Who::Viewer => Some(Role::Viewer),
        Who::Member => Some(Role::Member),
        Who::Admin => Some(Role::Admin),
        Who::RemovedMember => None,
    };
    match operation.operation["x-permission"].as_str() {
        None => Decision::Allowed,
        Some(permission) => {
            let permission = permission.parse().unwrap();
            let is_allowed = role.is_some_and(|role| role.permissions().contain(permission));
            if is_allowed { Decision::Allowed } else { Decision::Forbidden }
        }
    }
}
