//! The encoding of paths in a backup.

use std::{
    ffi::OsString,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Component, Path, PathBuf},
};

use super::INSTANCE_ID;

/// The folders of the data directory that are part of a backup.
pub(super) const FOLDERS: [&str; 3] = ["sites", "compositions", "git"];

/// The longest path that is restored.
const LONGEST: usize = 4096;

/// Encodes a path as text without loss. Bytes that are not text or that a terminal may interpret are
/// written as `%` and two hexadecimal digits.
pub(super) fn name_of(path: &Path) -> String {
    let mut name = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter.is_control() || letter == '%' {
                letter.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| escape(byte, &mut name));
            } else {
                name.push(letter);
            }
        }
        chunk.invalid().iter().for_each(|byte| escape(*byte, &mut name));
    }
    name
}

fn escape(byte: u8, name: &mut String) {
    name.push_str(&format!("%{byte:02x}"));
}

/// Decodes a name to a path in the data directory. Returns `None` for a name that [`name_of`] does not
/// produce, for a path that is not part of a backup, and for one that leaves the data directory.
pub(super) fn path_of(name: &str) -> Option<PathBuf> {
    let path = any_path_of(name)?;
    let mut parts = path.components();
    let Some(Component::Normal(first)) = parts.next() else { return None };
    if !parts.clone().all(|part| matches!(part, Component::Normal(_))) {
        return None;
    }
    let is_in_a_folder = FOLDERS.iter().any(|folder| first == *folder);
    let is_the_id = first == INSTANCE_ID && parts.next().is_none();
    // One path has one name, so that no two names are the same file.
    let is_plain = path.components().collect::<PathBuf>().as_os_str() == path.as_os_str();
    (is_plain && (is_in_a_folder || is_the_id)).then_some(path)
}

/// Decodes a name to a path, without restrictions on the path.
pub(super) fn any_path_of(name: &str) -> Option<PathBuf> {
    let mut bytes = Vec::new();
    let mut rest = name.as_bytes();
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        if *byte == b'%' {
            let (digits, behind) = rest.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = behind;
        } else {
            bytes.push(*byte);
        }
    }
    let path = PathBuf::from(OsString::from_vec(bytes));
    let is_ours = name_of(&path) == name && !path.as_os_str().as_bytes().contains(&0);
    (is_ours && !name.is_empty() && path.as_os_str().len() <= LONGEST).then_some(path)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn every_path_has_a_name_that_leads_back_to_it() {
        for bytes in
            [&b"sites/a/b/index.html"[..], b"sites/50%/\xff\xfe\n", "sites/für".as_bytes(), b"instance-id"]
        {
            let path = Path::new(OsStr::from_bytes(bytes));
            let name = name_of(path);
            assert!(!name.contains(char::is_control), "{name}");
            assert_eq!(path_of(&name).as_deref(), Some(path), "{name}");
        }
    }

    #[test]
    fn nothing_leads_out_of_the_folders_of_a_backup() {
        for name in [
            "",
            "/etc/passwd",
            "sites/../../etc/passwd",
            "../sites/a",
            "sites/./a",
            "sites//a",
            "sites/a/",
            "./sites/a",
            "secret.key",
            "launchway.db",
            "instance-id/a",
            "sites%2fa",
            "sites/%2e%2e/a",
            "sites/%41",
            "sites/%",
            "sites/%4",
            "sites/%00",
            &format!("sites/{}", "a/".repeat(3000)),
        ] {
            assert_eq!(path_of(name), None, "{name}");
        }
    }
}
