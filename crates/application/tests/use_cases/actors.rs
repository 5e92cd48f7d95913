//! Actors without certain permissions on applications.

use launchway_domain::{
    auth::{Actor, Forbidden},
    organizations::Role,
};
use launchway_testkit::builders::{an_actor, an_api_token, parsed};

/// An actor who may only read.
pub(crate) fn a_viewer() -> Actor {
    an_actor().with_role(Role::Viewer).build()
}

/// An actor who may deploy.
pub(crate) fn a_member() -> Actor {
    an_actor().with_role(Role::Member).build()
}

/// An API token of an admin with every permission but `named`.
pub(crate) fn a_program_without(named: &str) -> Actor {
    let others: Vec<&str> =
        Role::Admin.permissions().names().into_iter().filter(|name| *name != named).collect();
    an_actor().with_api_token(an_api_token().permitting(&others).build()).build()
}

pub(crate) fn lacks(permission: &str) -> Forbidden {
    Forbidden::Lacks(parsed(permission))
}
