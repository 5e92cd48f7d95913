//! The host name that every application has, whether or not it has a domain.

use super::{ApplicationName, Environment, hostname::is_label};
use crate::{
    organizations::OrganizationName,
    value::{InvalidValue, text_value},
};

/// The length limit of a DNS label.
const LONGEST: usize = 63;

text_value!(
    /// `<application>.<organization>.localhost`: browsers and curl resolve it to their own machine.
    AutomaticHost,
    |raw| {
        let labels = raw.strip_suffix(".localhost").and_then(|name| name.split_once('.'));
        match labels {
            Some((application, organization)) if is_label(application) && is_label(organization) => Ok(raw),
            _ => Err(InvalidValue::text("an application and an organization under `localhost`", &raw)),
        }
    }
);

impl AutomaticHost {
    /// Returns the host name that an application gets if it is free.
    #[must_use]
    pub fn of(name: &ApplicationName, environment: &Environment, organization: &OrganizationName) -> Self {
        let organization = slug(organization.as_str(), "organization");
        Self(format!("{}.{organization}.localhost", label(name, environment)))
    }

    /// Returns the host name that another application of the same organization gets if it is free.
    #[must_use]
    pub fn beside(&self, name: &ApplicationName, environment: &Environment) -> Self {
        let rest = self.0.split_once('.').map_or("localhost", |(_, rest)| rest);
        Self(format!("{}.{rest}", label(name, environment)))
    }

    /// Returns the same host name with a number, for when the one without is taken.
    #[must_use]
    pub fn numbered(&self, number: u32) -> Self {
        let (application, rest) = self.0.split_once('.').unwrap_or((&self.0, "localhost"));
        let ending = format!("-{number}");
        let kept = application.len().min(LONGEST - ending.len());
        Self(format!("{}{ending}.{rest}", application[..kept].trim_end_matches('-')))
    }
}

/// Returns the label of an application.
fn label(name: &ApplicationName, environment: &Environment) -> String {
    let wanted = match environment.as_str() {
        "production" => name.as_str().to_owned(),
        environment => format!("{name}-{environment}"),
    };
    slug(&wanted, "application")
}

/// Turns a text into a DNS label; `otherwise` if nothing is left of it.
fn slug(text: &str, otherwise: &str) -> String {
    let mut slug = String::new();
    for character in text.chars() {
        if character.is_ascii_alphanumeric() {
            slug.push(character.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.truncate(LONGEST);
    match slug.trim_end_matches('-') {
        "" => otherwise.to_owned(),
        slug => slug.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn host(name: &str, environment: &str, organization: &str) -> AutomaticHost {
        AutomaticHost::of(
            &name.parse().unwrap(),
            &environment.parse().unwrap(),
            &organization.parse().unwrap(),
        )
    }

    #[test]
    fn a_host_is_made_of_the_application_and_the_organization() {
        for (name, environment, organization, expected) in [
            ("web", "production", "Acme", "web.acme.localhost"),
            ("My  Shop_2", "production", "Acme & Sons, Ltd.", "my-shop-2.acme-sons-ltd.localhost"),
            ("web", "staging", "Acme", "web-staging.acme.localhost"),
            ("web-", "production", "日本", "web.organization.localhost"),
        ] {
            assert_eq!(host(name, environment, organization).as_str(), expected);
        }
    }

    #[test]
    fn the_host_of_another_application_is_beside_it() {
        let web = host("web", "production", "Acme & Sons");
        let [name, environment] = ["pr-7-web", "preview"];
        let beside = web.beside(&name.parse().unwrap(), &environment.parse().unwrap());
        assert_eq!(beside, host(name, environment, "Acme & Sons"));
    }

    #[test]
    fn what_is_too_long_is_cut_to_63_characters() {
        let long = "a".repeat(60);
        for (environment, expected) in [("a1", "a1"), ("abc", "ab")] {
            let host = host(&long, environment, "Acme");
            assert_eq!(host.as_str(), format!("{long}-{expected}.acme.localhost"));
        }
        // No label ends with `-`.
        assert_eq!(
            host(&"a".repeat(62), "staging", "Acme").as_str(),
            format!("{}.acme.localhost", "a".repeat(62))
        );
    }

    #[test]
    fn a_number_finds_its_place() {
        assert_eq!(host("web", "production", "Acme").numbered(2).as_str(), "web-2.acme.localhost");
        let long = host(&"a".repeat(63), "production", "Acme").numbered(12);
        assert_eq!(long.as_str(), format!("{}-12.acme.localhost", "a".repeat(60)));
    }

    #[test]
    fn other_names_are_no_automatic_hosts() {
        for raw in
            ["", "localhost", "web.localhost", "web.acme.example", "a.b.c.localhost", "-.acme.localhost"]
        {
            assert!(raw.parse::<AutomaticHost>().is_err(), "{raw}");
        }
    }

    proptest! {
        #[test]
        fn what_is_made_is_always_a_host(
            name in "[A-Za-z0-9][A-Za-z0-9 _-]{0,62}",
            environment in "[a-z0-9]{1,25}(-[a-z0-9]{1,10}){0,2}",
            organization in "\\PC{1,50}",
            number in 2_u32..10_000,
        ) {
            if let Ok(organization) = organization.parse::<OrganizationName>() {
                let host = AutomaticHost::of(&name.parse().unwrap(), &environment.parse().unwrap(), &organization);
                prop_assert!(host.as_str().parse::<AutomaticHost>().is_ok(), "{}", host);
                prop_assert!(host.numbered(number).as_str().parse::<AutomaticHost>().is_ok());
            }
        }
    }
}
