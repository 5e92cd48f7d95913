//! Resolves the names that users give.

use crate::{
    contexts::Contexts,
    failure::{Failure, Kind, Outcome},
    manifest::Manifest,
    records::{Application, Applications, Membership},
    server::Server,
};

/// The page size of the list of applications.
const PAGE: u32 = 100;

/// Returns the id of an organization by its name or id.
pub(crate) fn organization(server: &Server, name: &str) -> Outcome<String> {
    let memberships: Vec<Membership> = server.get("/user/organizations").receive()?;
    let organizations = memberships.into_iter().filter_map(|membership| membership.organization);
    let organizations: Vec<_> = organizations.collect();
    let mut meant = organizations.iter().filter(|one| one.id == name || one.name.eq_ignore_ascii_case(name));
    match (meant.next(), meant.next()) {
        (Some(one), None) => Ok(one.id.clone()),
        (Some(_), Some(_)) => {
            Err(Failure::new(Kind::Usage, format!("several organizations are named `{name}`"))
                .hint("use the id; `launchway org list` shows it"))
        }
        (None, _) => {
            let known: Vec<_> = organizations.iter().map(|one| one.name.as_str()).collect();
            Err(Failure::new(
                Kind::Missing,
                format!("you are not a member of an organization named `{name}`"),
            )
            .hint(format!("your organizations: {}", known.join(", "))))
        }
    }
}

/// Returns an application by its id, its name, or its name and environment as `name@environment`.
pub(crate) fn application(server: &Server, name: &str) -> Outcome<Application> {
    let (plain, environment) = match name.rsplit_once('@') {
        Some((plain, environment)) => (plain, Some(environment)),
        None => (name, None),
    };
    if is_id(name) {
        return server.get("/deploy/application").with("id", name).receive();
    }
    let mut meant = Vec::new();
    for page in 1.. {
        let listed: Applications = server
            .get("/deploy/applications")
            .with("search", plain)
            .with_some("environment", environment)
            .with("page", page)
            .with("page_size", PAGE)
            .receive()?;
        meant.extend(listed.applications.into_iter().filter(|one| one.name.eq_ignore_ascii_case(plain)));
        if !listed.pagination.has_next {
            break;
        }
    }
    match meant.len() {
        0 => Err(Failure::new(Kind::Missing, format!("there is no application named `{name}`"))
            .hint("`launchway apps` lists the applications of this organization")),
        1 => Ok(meant.remove(0)),
        _ => {
            let names: Vec<_> = meant.iter().map(|one| format!("{}@{}", one.name, one.environment)).collect();
            Err(Failure::new(Kind::Usage, format!("several applications are named `{name}`"))
                .hint(format!("specify one of: {}", names.join(", "))))
        }
    }
}

/// Returns the named application or, without a name, that of the local `launchway.toml`.
pub(crate) fn meant(server: &Server, name: Option<&str>) -> Outcome<Application> {
    match name {
        Some(name) => application(server, name),
        None => match Manifest::here()? {
            Some(manifest) => application(server, &manifest.title()?),
            None => {
                Err(Failure::new(Kind::Usage, "no application is specified, and there is no launchway.toml")
                    .hint("specify an application; `launchway apps` lists them"))
            }
        },
    }
}

/// Returns whether this can only be an id. Names of applications have up to 63 characters, so an id would
/// be a valid name, but no one calls an application by 36 hexadecimal digits and dashes.
pub(crate) fn is_id(name: &str) -> bool {
    name.len() == 36 && name.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

/// Checks that an argument can be an id: it becomes part of a path.
pub(crate) fn id(text: &str) -> Outcome<&str> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !text.is_empty() && text.chars().all(is_allowed) {
        true => Ok(text),
        false => Err(Failure::new(Kind::Missing, format!("`{text}` is not a valid id"))
            .hint("an id consists of letters, digits, dashes and underscores")),
    }
}

/// The failure if no context has this name.
pub(crate) fn no_context(name: &str, contexts: &Contexts) -> Failure {
    let known: Vec<_> = contexts.contexts.keys().map(String::as_str).collect();
    let failure = Failure::new(Kind::Missing, format!("there is no context named `{name}`"));
    match known.is_empty() {
        true => failure.hint("`launchway login https://your.server` creates one"),
        false => failure.hint(format!("existing contexts: {}", known.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_cannot_lead_to_another_route() {
        for fine in ["postgres", "postgres-fork-ab12cd34", "0190b2c4-0000-7000-8000-00000000000a"] {
            assert_eq!(id(fine).unwrap(), fine);
        }
        for wrong in ["", "..", "../users", "a/b", "a?b", "a%2fb", "a b"] {
            assert_eq!(id(wrong).unwrap_err().kind, Kind::Missing, "{wrong}");
        }
    }
}
