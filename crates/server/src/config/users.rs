//! Settings that name users of the machine.

use std::fs;

const USERS: &str = "/etc/passwd";

/// Parses the id of a user, or the name of one in `/etc/passwd`.
pub(super) fn user_id(raw: &str) -> Result<u32, String> {
    match raw.parse() {
        Ok(id) => Ok(id),
        Err(_) => {
            let users = fs::read_to_string(USERS).map_err(|error| format!("a user id: {USERS}: {error}"))?;
            id_in(&users, raw).ok_or_else(|| format!("the name of a user in {USERS}, or a user id"))
        }
    }
}

fn id_in(users: &str, name: &str) -> Option<u32> {
    let mut entries = users.lines().map(|line| line.split(':'));
    entries.find_map(|mut fields| (fields.next() == Some(name)).then(|| fields.nth(1))?)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_named_or_numbered() {
        assert_eq!(user_id("0"), Ok(0));
        assert_eq!(user_id("root"), Ok(0));
        for wrong in ["-1", "4294967296", "root:x", "", "nobody here"] {
            assert!(user_id(wrong).unwrap_err().contains("user id"), "{wrong:?}");
        }
        let users = "root:x:0:0::/root:/bin/sh\nlaunchway:x:998:997::/:/bin/false\nbroken\nodd:x:y:0";
        assert_eq!(id_in(users, "launchway"), Some(998));
        assert_eq!(id_in(users, "odd"), None);
        assert_eq!(id_in(users, "broken"), None);
    }
}
