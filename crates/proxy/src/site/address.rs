//! The file that a request path names.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _, path::PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

/// The one folder with a dot that is served (RFC 8615).
const WELL_KNOWN: &[u8] = b".well-known";

/// Characters that are not escaped in a redirect.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A path that was decoded once and cannot leave the folder of the site.
///
/// **Invariant:** no segment is empty, begins with a dot (except `.well-known` at the root), or
/// contains a slash, a backslash or a NUL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    names: Vec<Vec<u8>>,
    /// The path ends with a slash.
    pub(super) is_folder: bool,
}

impl Address {
    /// Parses the path of a request. Returns `None` if a site never serves it.
    pub(super) fn parse(path: &str) -> Option<Self> {
        let path = path.strip_prefix('/')?;
        if path.is_empty() {
            return Some(Self { names: Vec::new(), is_folder: true });
        }
        let (path, is_folder) = match path.strip_suffix('/') {
            Some(folder) => (folder, true),
            None => (path, false),
        };
        let names: Vec<Vec<u8>> = path.split('/').map(|name| percent_decode_str(name).collect()).collect();
        let are_served = names.iter().enumerate().all(|(depth, name)| is_served(depth, name));
        are_served.then_some(Self { names, is_folder })
    }

    /// Returns the path of the file, relative to the folder of the site.
    pub(super) fn file(&self) -> PathBuf {
        let names = self.names.iter().map(|name| OsStr::from_bytes(name));
        let index = self.is_folder.then_some(OsStr::new("index.html"));
        names.chain(index).collect()
    }

    /// Returns the same address as a folder.
    pub(super) fn as_folder(&self) -> Self {
        Self { names: self.names.clone(), is_folder: true }
    }

    /// Returns the location of the folder, relative to the path without a trailing slash. It begins with
    /// `./`, so that no name can be parsed as a scheme or a host.
    pub(super) fn redirect(&self) -> String {
        let name = self.names.last().map_or(&[][..], Vec::as_slice);
        format!("./{}/", percent_encode(name, PLAIN))
    }

    /// Returns whether the last segment has a file extension.
    pub(super) fn has_extension(&self) -> bool {
        !self.is_folder && self.names.last().is_some_and(|name| name.contains(&b'.'))
    }
}

fn is_served(depth: usize, name: &[u8]) -> bool {
    let is_hidden = name.starts_with(b".") && !(depth == 0 && name == WELL_KNOWN);
    !name.is_empty() && !is_hidden && !name.iter().any(|byte| matches!(byte, b'/' | b'\\' | 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_down_or_nowhere() {
        for (path, file) in [
            ("/", Some("index.html")),
            ("/a", Some("a")),
            ("/a.txt", Some("a.txt")),
            ("/a/", Some("a/index.html")),
            ("/a/b/c.css", Some("a/b/c.css")),
            ("/a%20b", Some("a b")),
            ("/caf%C3%A9", Some("café")),
            ("/a+b", Some("a+b")),
            ("/a:b", Some("a:b")),
            ("/a;b=c", Some("a;b=c")),
            ("/a..b", Some("a..b")),
            ("/a...", Some("a...")),
            ("/~a", Some("~a")),
            ("/100%", Some("100%")),
            ("/%zz", Some("%zz")),
            ("/%252e%252e/a", Some("%2e%2e/a")),
            ("/%25", Some("%")),
            ("/.well-known/acme-challenge/x", Some(".well-known/acme-challenge/x")),
            ("/%2Ewell-known/x", Some(".well-known/x")),
            ("", None),
            ("*", None),
            ("a", None),
            ("//", None),
            ("///", None),
            ("//a", None),
            ("//evil.example", None),
            ("//evil.example/", None),
            ("/a//b", None),
            ("/a//", None),
            ("/.", None),
            ("/./", None),
            ("/./a", None),
            ("/..", None),
            ("/../", None),
            ("/../etc/passwd", None),
            ("/a/../b", None),
            ("/a/..", None),
            ("/%2e", None),
            ("/%2e%2e/", None),
            ("/%2E%2E/etc/passwd", None),
            ("/.%2e/a", None),
            ("/..%2fetc", None),
            ("/a%2fb", None),
            ("/a%2Fb", None),
            ("/%2fetc/passwd", None),
            ("/a%5cb", None),
            ("/a\\b", None),
            ("/..\\..\\a", None),
            ("/%5c%5cevil.example", None),
            ("/a%00", None),
            ("/a%00.html", None),
            ("/.git/config", None),
            ("/.env", None),
            ("/.htaccess", None),
            ("/a/.git/", None),
            ("/a/.DS_Store", None),
            ("/...", None),
            ("/.well-knownx", None),
            ("/.Well-Known/x", None),
            ("/a/.well-known/x", None),
            ("/.well-known/.htpasswd", None),
            ("/.well-known/../.env", None),
        ] {
            let found = Address::parse(path).map(|address| address.file());
            assert_eq!(found, file.map(PathBuf::from), "{path}");
        }
    }

    #[test]
    fn a_redirect_stays_beside_the_path() {
        for (path, expected) in [
            ("/a", "./a/"),
            ("/a/b", "./b/"),
            ("/a:b", "./a%3Ab/"),
            ("/javascript:alert(1)", "./javascript%3Aalert%281%29/"),
            ("/a%0d%0ab", "./a%0D%0Ab/"),
            ("/evil.example", "./evil.example/"),
            ("/a?b", "./a%3Fb/"),
            ("/caf%C3%A9", "./caf%C3%A9/"),
        ] {
            let address = Address::parse(path).unwrap();
            assert_eq!(address.redirect(), expected, "{path}");
        }
    }

    #[test]
    fn only_the_last_name_has_an_extension() {
        for (path, expected) in [
            ("/a.js", true),
            ("/a", false),
            ("/v1.2/a", false),
            ("/a.js/", false),
            ("/", false),
            ("/a.", true),
        ] {
            assert_eq!(Address::parse(path).unwrap().has_extension(), expected, "{path}");
        }
    }
}
