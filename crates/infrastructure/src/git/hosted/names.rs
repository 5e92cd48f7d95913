//! The entries of a folder of a commit, as `git ls-tree -l -z` lists them.

/// An entry.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    mode: &'a str,
    pub(super) object: &'a str,
    pub(super) size: u64,
    pub(super) name: &'a str,
}

impl Entry<'_> {
    /// Returns whether it is a file, and neither a link nor a folder.
    pub(super) fn is_file(&self) -> bool {
        self.mode.starts_with("100")
    }
}

/// Parses a list. Names that are not UTF-8 are left out.
pub(super) fn entries(list: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    list.split(|byte| *byte == 0).filter_map(|line| {
        let (attributes, name) = std::str::from_utf8(line).ok()?.split_once('\t')?;
        let mut attributes = attributes.split_ascii_whitespace();
        let (mode, _kind, object) = (attributes.next()?, attributes.next()?, attributes.next()?);
        let size = attributes.next().and_then(|size| size.parse().ok()).unwrap_or(0);
        Some(Entry { mode, object, size, name })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_from_links_and_folders() {
        let list = b"100644 blob aa      12\tindex.html\x00120000 blob bb       4\tlink\x00040000 tree cc       -\tsrc\0\
                     100755 blob dd       1\t\xff\0";
        let found: Vec<_> = entries(list).map(|entry| (entry.name, entry.size, entry.is_file())).collect();
        assert_eq!(found, [("index.html", 12, true), ("link", 4, false), ("src", 0, false)]);
    }
}
