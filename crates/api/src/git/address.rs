//! The paths of repositories.

use launchway_application::sources::TargetName;
use launchway_domain::ids::ApplicationId;
use percent_encoding::percent_decode_str;

/// The location of a repository.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// By the id of the application.
    Id(ApplicationId),
    /// By its name.
    Named {
        /// The name or the id of the organization.
        organization: String,
        name: TargetName,
    },
}

/// The path of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Address<'a> {
    pub(super) place: Place,
    /// The path inside of the repository.
    pub(super) action: &'a str,
}

impl<'a> Address<'a> {
    /// Parses `/git/<id>.git/<action>` and `/git/<organization>/<environment>/<application>.git/<action>`.
    pub(super) fn parse(path: &'a str) -> Option<Self> {
        let path = path.strip_prefix("/git/")?;
        let (repository, action) = path.split_once(".git/")?;
        let parts: Vec<String> = repository.split('/').map(decoded).collect::<Option<_>>()?;
        let place = match parts.as_slice() {
            [id] => Place::Id(id.parse().ok()?),
            [organization, environment, name] => Place::Named {
                organization: organization.clone(),
                name: TargetName { name: name.parse().ok()?, environment: environment.parse().ok()? },
            },
            _ => return None,
        };
        Some(Self { place, action })
    }
}

fn decoded(part: &str) -> Option<String> {
    let text = percent_decode_str(part).decode_utf8().ok()?;
    (!text.contains(char::is_control)).then(|| text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_has_an_id_or_a_name() {
        let id = "0198c9f2-7c1e-7000-8000-000000000001";
        let path = format!("/git/{id}.git/info/refs");
        let address = Address::parse(&path).unwrap();
        assert_eq!((address.place, address.action), (Place::Id(id.parse().unwrap()), "info/refs"));
        let address =
            Address::parse("/git/ada%27s%20Team/production/my%20shop.git/git-receive-pack").unwrap();
        let name =
            TargetName { name: "my shop".parse().unwrap(), environment: "production".parse().unwrap() };
        assert_eq!(address.place, Place::Named { organization: "ada's Team".to_owned(), name });
        assert_eq!(address.action, "git-receive-pack");
    }

    #[test]
    fn other_paths_are_no_repositories() {
        for path in [
            "/git/",
            "/git/shop.git/info/refs",
            "/git/a/b.git/info/refs",
            "/git/a/b/c/d.git/info/refs",
            "/git/a/production/..%2f..%2fetc.git/info/refs",
            "/git/a/production/x%0a.git/info/refs",
            "/git/a/production/%ff.git/info/refs",
            "/git/a/production/shop/info/refs",
        ] {
            assert_eq!(Address::parse(path), None, "{path}");
        }
    }
}
