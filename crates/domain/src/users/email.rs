//! E-mail addresses.

use super::Username;
use crate::value::{InvalidValue, text_value};

text_value!(
    /// An e-mail address, stored as it was written.
    ///
    /// Two addresses that differ only in case belong to the same user: compare [`key`](EmailAddress::key)s.
    ///
    /// ```
    /// use launchway_domain::users::EmailAddress;
    ///
    /// let [one, other] = ["Ada@Example.com", "ada@example.com"].map(|raw| raw.parse::<EmailAddress>().unwrap());
    /// assert_eq!(one.key(), other.key());
    /// ```
    EmailAddress,
    |raw| {
        let address = raw.trim();
        if is_address(address) {
            Ok(address.to_owned())
        } else {
            Err(InvalidValue::text("an e-mail address like `ada@example.com`, at most 254 characters", address))
        }
    }
);

impl EmailAddress {
    /// Returns the key that makes the address unique: the address in lower case.
    #[must_use]
    pub fn key(&self) -> String {
        self.as_str().to_lowercase()
    }

    /// Returns a default user name: the part before the `@`.
    #[must_use]
    pub fn local_part(&self) -> Username {
        let local = self.as_str().rsplit_once('@').map_or(self.as_str(), |(local, _domain)| local);
        Username::shortened(local)
    }
}

fn is_address(address: &str) -> bool {
    let Some((local, domain)) = address.rsplit_once('@') else {
        return false;
    };
    address.len() <= 254
        && (1..=64).contains(&local.len())
        && !local.contains("..")
        && !local.starts_with('.')
        && !local.ends_with('.')
        && local.chars().all(is_local_character)
        && domain.split('.').all(is_label)
}

fn is_local_character(c: char) -> bool {
    // The unquoted form of RFC 5322, and alphanumeric characters of every script (RFC 6531).
    c.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~.".contains(c)
}

fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.chars().all(|c| c.is_alphanumeric() || c == '-')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ordinary_addresses_are_kept_as_written() {
        for address in
            ["ada@example.com", "A.Lovelace+ci@Example.CO.uk", "root@localhost", "jürgen@müller.de"]
        {
            assert_eq!(address.parse::<EmailAddress>().unwrap().as_str(), address);
        }
    }

    #[test]
    fn white_space_around_an_address_is_dropped() {
        assert_eq!(" ada@example.com\n".parse::<EmailAddress>().unwrap().as_str(), "ada@example.com");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "ada",
            "@example.com",
            "ada@",
            "a@b@c.com",
            "a da@example.com",
            ".a@b.c",
            "a..b@c.d",
            "a@-b.c",
            "a@b..c",
        ] {
            assert!(text.parse::<EmailAddress>().is_err(), "{text:?} was accepted");
        }
    }

    #[test]
    fn the_longest_address_has_254_bytes() {
        let labels = [&"d".repeat(63), &"d".repeat(63), &"d".repeat(62)].map(String::as_str).join(".");
        assert!(format!("{}@{labels}", "l".repeat(63)).parse::<EmailAddress>().is_ok());
        assert!(format!("{}@{labels}", "l".repeat(64)).parse::<EmailAddress>().is_err());
    }

    proptest! {
        #[test]
        fn the_local_part_of_an_address_is_a_valid_name(local in "[a-z0-9+.]{1,64}") {
            if let Ok(address) = format!("{local}@example.com").parse::<EmailAddress>() {
                let name = address.local_part();
                prop_assert_eq!(name.as_str().parse::<Username>(), Ok(name.clone()));
            }
        }

        #[test]
        fn an_accepted_address_survives_being_parsed_again(text in "\\PC{0,80}") {
            if let Ok(address) = text.parse::<EmailAddress>() {
                prop_assert_eq!(address.as_str().parse::<EmailAddress>(), Ok(address.clone()));
                prop_assert!(!address.as_str().contains(char::is_whitespace));
            }
        }

        #[test]
        fn any_simple_address_is_accepted(local in "[a-z0-9]{1,20}", domain in "[a-z0-9]{1,20}\\.[a-z]{2,6}") {
            let address = format!("{local}@{domain}");
            prop_assert!(address.parse::<EmailAddress>().is_ok());
        }
    }
}
