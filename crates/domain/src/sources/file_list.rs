//! The list of the files of an upload, which is cut into blocks itself.
//!
//! **Invariant:** the digest of the list is that of its root block, and depends on the files alone: the same files have the
//! same digest, and a changed file changes only the blocks from its line up to the root.

use std::{fmt, str::FromStr};

use super::BlockId;

/// The first line of a block with lines of files.
const FILES: &str = "files\n";
/// The first line of a block with digests of other blocks of the list.
const LISTS: &str = "lists\n";
/// The fewest lines of a block, except of the last one. More than one, so that every level is shorter than the one below.
#[cfg(feature = "hashes")]
const FEWEST_LINES: usize = 8;
/// One of this many further lines ends its block.
#[cfg(feature = "hashes")]
const LINES_TO_END: u8 = 8;
/// The most bytes of a block, unless a single line has more.
#[cfg(feature = "hashes")]
const LARGEST_BLOCK: usize = 512 * 1024;

/// The mode of a file, as git stores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileMode {
    /// A regular file.
    Regular,
    /// A regular file that may be run.
    Executable,
    /// A symbolic link, whose content is its target.
    Link,
}

impl FileMode {
    const ALL: [Self; 3] = [Self::Regular, Self::Executable, Self::Link];

    /// Returns the octal number.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Regular => "100644",
            Self::Executable => "100755",
            Self::Link => "120000",
        }
    }
}

/// A file of an upload. Its line has its mode, the digests of its blocks with commas between them, and its path; an empty
/// file has `-` instead of digests.
///
/// ```
/// use launchway_domain::sources::{FileMode, ListedFile};
///
/// let file: ListedFile = "100755 - bin/my program".parse().unwrap();
/// assert_eq!((file.mode, file.path.as_str()), (FileMode::Executable, "bin/my program"));
/// assert_eq!(file.to_string(), "100755 - bin/my program");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFile {
    /// The mode.
    pub mode: FileMode,
    /// The blocks of its content, in their order.
    pub blocks: Vec<BlockId>,
    /// The path, with `/` between folders. It is not checked yet.
    pub path: String,
}

impl fmt::Display for ListedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.mode.as_str())?;
        for (number, block) in self.blocks.iter().enumerate() {
            if number > 0 {
                f.write_str(",")?;
            }
            block.fmt(f)?;
        }
        let none = if self.blocks.is_empty() { "-" } else { "" };
        write!(f, "{none} {}", self.path)
    }
}

/// The reason why a list of files cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("The list of files is damaged.")]
pub struct InvalidFileList;

impl FromStr for ListedFile {
    type Err = InvalidFileList;

    fn from_str(line: &str) -> Result<Self, InvalidFileList> {
        let mut parts = line.splitn(3, ' ');
        let (Some(mode), Some(blocks), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(InvalidFileList);
        };
        let mode = FileMode::ALL.into_iter().find(|known| known.as_str() == mode).ok_or(InvalidFileList)?;
        let blocks = match blocks {
            "-" => Vec::new(),
            blocks => blocks
                .split(',')
                .map(|block| block.parse().map_err(|_wrong| InvalidFileList))
                .collect::<Result<_, _>>()?,
        };
        Ok(Self { mode, blocks, path: path.to_owned() })
    }
}

/// The content of a block of a list of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListBlock<'a> {
    /// Lines of files.
    Files(&'a str),
    /// Further blocks, in their order.
    Lists(Vec<BlockId>),
}

impl<'a> ListBlock<'a> {
    /// Parses the content of a block.
    ///
    /// # Errors
    /// [`InvalidFileList`] if it is not a block of a list of files.
    pub fn parse(content: &'a [u8]) -> Result<Self, InvalidFileList> {
        let text = std::str::from_utf8(content).map_err(|_odd| InvalidFileList)?;
        if !text.ends_with('\n') {
            return Err(InvalidFileList);
        }
        if let Some(lines) = text.strip_prefix(FILES) {
            return Ok(Self::Files(lines));
        }
        let digests = text.strip_prefix(LISTS).ok_or(InvalidFileList)?.split_terminator('\n');
        let digests = digests.map(|digest| digest.parse().map_err(|_wrong| InvalidFileList));
        digests.collect::<Result<_, _>>().map(Self::Lists)
    }
}

/// A block of a list of files, as a client makes it.
#[cfg(feature = "hashes")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeBlock {
    /// The digest.
    pub id: BlockId,
    /// The content.
    pub content: Vec<u8>,
    /// The positions of its blocks one level below, or of its files.
    pub children: std::ops::Range<usize>,
}

/// The blocks of a list of files, as a client makes them: level by level, and the root is the only one of the last.
#[cfg(feature = "hashes")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileList {
    levels: Vec<Vec<MadeBlock>>,
}

#[cfg(feature = "hashes")]
impl FileList {
    /// Makes the list of `files`, which are in the order of their paths.
    #[must_use]
    pub fn new(files: &[ListedFile]) -> Self {
        let mut lines = Cutter::new(FILES);
        for file in files {
            // Only the path decides, so that a changed file does not move the ends of blocks.
            let is_end = is_end(&BlockId::of(file.path.as_bytes()));
            lines.add(&file.to_string(), is_end);
        }
        let mut levels = vec![lines.finish()];
        while let Some(below) = levels.last().filter(|level| level.len() > 1) {
            let mut lists = Cutter::new(LISTS);
            for block in below {
                lists.add(&block.id.to_string(), is_end(&block.id));
            }
            levels.push(lists.finish());
        }
        Self { levels }
    }

    /// Returns the levels, from the root to the blocks with lines of files.
    pub fn levels(&self) -> impl Iterator<Item = &[MadeBlock]> {
        self.levels.iter().rev().map(Vec::as_slice)
    }

    /// Returns the digest of the list.
    #[must_use]
    pub fn digest(&self) -> BlockId {
        let root = self.levels.last().and_then(|level| level.first());
        root.map_or_else(|| BlockId::of(b""), |root| root.id)
    }
}

#[cfg(feature = "hashes")]
fn is_end(id: &BlockId) -> bool {
    id.0[0].is_multiple_of(LINES_TO_END)
}

/// Cuts lines into blocks.
#[cfg(feature = "hashes")]
struct Cutter {
    head: &'static str,
    made: Vec<MadeBlock>,
    text: String,
    begin: usize,
    end: usize,
}

#[cfg(feature = "hashes")]
impl Cutter {
    fn new(head: &'static str) -> Self {
        Self { head, made: Vec::new(), text: head.to_owned(), begin: 0, end: 0 }
    }

    fn add(&mut self, line: &str, is_end: bool) {
        let is_large = self.text.len() + line.len() >= LARGEST_BLOCK;
        if is_large && self.end - self.begin > 1 {
            self.cut();
        }
        self.text.push_str(line);
        self.text.push('\n');
        self.end += 1;
        if is_end && self.end - self.begin >= FEWEST_LINES {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let content = std::mem::replace(&mut self.text, self.head.to_owned()).into_bytes();
        self.made.push(MadeBlock { id: BlockId::of(&content), content, children: self.begin..self.end });
        self.begin = self.end;
    }

    fn finish(mut self) -> Vec<MadeBlock> {
        if self.begin < self.end || self.made.is_empty() {
            self.cut();
        }
        self.made
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    fn files(count: usize, changed: Option<usize>) -> Vec<ListedFile> {
        let file = |number: usize| {
            let content = format!("{number} {}", changed == Some(number));
            let (path, blocks) = (format!("file-{number:06}"), vec![BlockId::of(content.as_bytes())]);
            ListedFile { mode: FileMode::Regular, blocks, path }
        };
        (0..count).map(file).collect()
    }

    fn ids(list: &FileList) -> HashSet<BlockId> {
        list.levels().flatten().map(|block| block.id).collect()
    }

    /// Reads a list back, as a server does.
    fn read(list: &FileList) -> Vec<ListedFile> {
        let blocks: HashMap<_, _> = list.levels().flatten().map(|one| (one.id, &one.content)).collect();
        let (mut found, mut rest) = (Vec::new(), vec![list.digest()]);
        while let Some(id) = rest.pop() {
            match ListBlock::parse(blocks[&id]).unwrap() {
                ListBlock::Files(lines) => found.extend(lines.lines().map(|line| line.parse().unwrap())),
                ListBlock::Lists(lists) => rest.extend(lists.into_iter().rev()),
            }
        }
        found
    }

    #[test]
    fn a_list_is_read_back_in_its_order() {
        for count in [0, 1, 2, 33, 10_000] {
            let list = FileList::new(&files(count, None));
            assert_eq!(read(&list), files(count, None), "{count}");
            assert_eq!(list.levels().next().unwrap().len(), 1, "{count}");
            assert!(list.levels().flatten().all(|block| block.id == BlockId::of(&block.content)));
        }
    }

    #[test]
    fn a_changed_file_changes_one_block_of_each_level() {
        let first = FileList::new(&files(10_000, None));
        for changed in [0, 4711, 9999] {
            let second = FileList::new(&files(10_000, Some(changed)));
            assert_ne!(first.digest(), second.digest());
            let (known, new) = (ids(&first), ids(&second));
            let sent: Vec<_> = new.difference(&known).collect();
            // A changed digest may also end a block elsewhere.
            assert!(sent.len() <= 2 * first.levels().count(), "{changed}: {}", sent.len());
        }
    }

    #[test]
    fn levels_point_to_all_of_the_level_below() {
        let all = files(5_000, None);
        let list = FileList::new(&all);
        let counts: Vec<usize> = list.levels().map(<[MadeBlock]>::len).chain([all.len()]).collect();
        for (level, below) in list.levels().zip(&counts[1..]) {
            let children: Vec<usize> = level.iter().flat_map(|block| block.children.clone()).collect();
            assert_eq!(children, (0..*below).collect::<Vec<_>>());
        }
        assert!(counts.len() > 3, "{counts:?}");
    }

    #[test]
    fn a_block_stays_small_unless_its_line_is_not() {
        let long = ListedFile {
            mode: FileMode::Regular,
            blocks: vec![BlockId::of(b"x"); 4_000],
            path: "long".to_owned(),
        };
        let list = FileList::new(&vec![long; 20]);
        let sizes: Vec<usize> = list.levels().flatten().map(|block| block.content.len()).collect();
        assert!(sizes.len() > 10 && sizes.iter().all(|size| *size <= LARGEST_BLOCK), "{sizes:?}");
    }

    #[test]
    fn lines_that_are_none_are_refused() {
        let id = BlockId::of(b"x");
        for wrong in [
            String::new(),
            "100644 -".to_owned(),
            "100600 - a".to_owned(),
            format!("100644 {id}, a"),
            format!("100644 ,{id} a"),
            "100644 abc a".to_owned(),
        ] {
            assert_eq!(wrong.parse::<ListedFile>(), Err(InvalidFileList), "{wrong}");
        }
        for wrong in [&b""[..], b"files", b"files\n100644 - a", b"lists\nabc\n", b"\xff", b"other\n"] {
            assert_eq!(ListBlock::parse(wrong), Err(InvalidFileList));
        }
        let two: ListedFile = format!("120000 {id},{id} a b").parse().unwrap();
        assert_eq!((two.blocks.len(), two.path.as_str()), (2, "a b"));
    }
}
