//! The files of a folder and their blocks.

use std::{
    collections::{BTreeSet, HashMap},
    fs::{self, File},
    io::{self, Read, Seek as _, SeekFrom},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use ignore::WalkBuilder;
use launchway_domain::sources::{BlockId, BlockLimits, FileList, FileMode, ListedFile};

use crate::failure::{Failure, Kind, Outcome, failed};

/// The position of a block in a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// The number of the file.
    pub(super) file: usize,
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// A folder to upload.
pub(crate) struct Folder {
    pub(super) root: PathBuf,
    pub(super) files: Vec<ListedFile>,
    pub(super) list: FileList,
    /// One place of each block.
    pub(super) places: HashMap<BlockId, Place>,
    /// The bytes of all files.
    pub(super) bytes: u64,
}

impl Folder {
    /// Reads the files of `root` that neither `.gitignore` nor `.dockerignore` excludes. Those of `needed` are read in any
    /// case: a `.dockerignore` may exclude even the Dockerfile.
    pub(crate) fn read(root: &Path, needed: &[&str]) -> Outcome<Self> {
        let cannot = || failed(format!("the files of {} cannot be read", root.display()));
        let mut names = Vec::new();
        for path in files(root, needed).map_err(cannot())? {
            let Some(name) = path.to_str() else {
                let sentence = format!("the name of {} is not UTF-8", path.display());
                return Err(Failure::new(Kind::Failed, sentence).hint("rename it, or add it to .gitignore"));
            };
            names.push(name.to_owned());
        }
        // By their text, as the list has them: a path is ordered by its folders.
        names.sort_unstable();
        let (mut listed, mut places, mut bytes) = (Vec::new(), HashMap::new(), 0);
        for (file, path) in names.into_iter().enumerate() {
            let place = root.join(&path);
            let cannot = || failed(format!("{} cannot be read", place.display()));
            let mode = mode(&place).map_err(cannot())?;
            let mut ids = Vec::new();
            let read = blocks(&place, mode, |offset, block| {
                let (id, length) = (BlockId::of(&block), block.len() as u64);
                ids.push(id);
                places.entry(id).or_insert(Place { file, offset, length });
                bytes += length;
                Ok(())
            });
            read.map_err(cannot())?;
            listed.push(ListedFile { mode, blocks: ids, path });
        }
        Ok(Self { root: root.to_owned(), list: FileList::new(&listed), files: listed, places, bytes })
    }

    /// Returns the number of files.
    pub(crate) fn count(&self) -> usize {
        self.files.len()
    }

    /// Returns the number of bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Returns the paths to pack, relative to `folder`.
fn files(folder: &Path, needed: &[&str]) -> io::Result<BTreeSet<PathBuf>> {
    let mut walk = WalkBuilder::new(folder);
    walk.standard_filters(false)
        .git_ignore(true)
        .git_exclude(true)
        .parents(false)
        .require_git(false)
        .add_custom_ignore_filename(".dockerignore")
        .filter_entry(|entry| entry.file_name() != ".git");
    let mut found = BTreeSet::new();
    for entry in walk.build() {
        let entry = entry.map_err(io::Error::other)?;
        let kind = entry.file_type();
        if kind.is_some_and(|kind| kind.is_file() || kind.is_symlink())
            && let Ok(path) = entry.path().strip_prefix(folder)
        {
            found.insert(path.to_owned());
        }
    }
    found.extend(needed.iter().map(PathBuf::from).filter(|path| folder.join(path).is_file()));
    Ok(found)
}

/// Returns the kind of a file, by which it is listed.
fn mode(path: &Path) -> io::Result<FileMode> {
    let metadata = fs::symlink_metadata(path)?;
    Ok(match metadata {
        metadata if metadata.is_symlink() => FileMode::Link,
        metadata if metadata.permissions().mode() & 0o100 != 0 => FileMode::Executable,
        _ => FileMode::Regular,
    })
}

/// Calls `see` with each block of a file and its position.
fn blocks(
    path: &Path,
    mode: FileMode,
    mut see: impl FnMut(u64, Vec<u8>) -> io::Result<()>,
) -> io::Result<()> {
    let mut content: Box<dyn Read> = match mode {
        FileMode::Link => {
            let target = fs::read_link(path)?.into_os_string().into_encoded_bytes();
            Box::new(io::Cursor::new(target))
        }
        FileMode::Regular | FileMode::Executable => Box::new(File::open(path)?),
    };
    let mut offset = 0;
    loop {
        let mut block = Vec::new();
        content.by_ref().take(BlockLimits::BLOCK as u64).read_to_end(&mut block)?;
        if block.is_empty() {
            return Ok(());
        }
        let length = block.len() as u64;
        see(offset, block)?;
        offset += length;
    }
}

/// Reads a block of a file again.
pub(super) fn read(path: &Path, mode: FileMode, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    if mode == FileMode::Link {
        return Ok(fs::read_link(path)?.into_os_string().into_encoded_bytes());
    }
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut block = Vec::new();
    file.take(length).read_to_end(&mut block)?;
    Ok(block)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::test_folder::folder;

    fn names(folder: &Folder) -> Vec<&str> {
        folder.files.iter().map(|file| file.path.as_str()).collect()
    }

    #[test]
    fn ignored_files_stay_here() {
        let folder = folder(&[
            (".gitignore", "node_modules\n*.log\n!keep.log\n/.env\n"),
            (".dockerignore", "docs\nDockerfile\n"),
            ("Dockerfile", "FROM x"),
            (".env", "SECRET=1"),
            (".dotfile", ""),
            (".git/config", ""),
            ("a.log", ""),
            ("keep.log", ""),
            ("docs/a.md", ""),
            ("node_modules/x/index.js", ""),
            ("src/.gitignore", "generated\n"),
            ("src/generated/a", ""),
            ("src/main.js", ""),
        ]);
        symlink("src/main.js", folder.path().join("main")).unwrap();
        let read = Folder::read(folder.path(), &["Dockerfile", "missing"]).unwrap();
        assert_eq!((read.count(), read.bytes()), (8, 78));
        assert_eq!(
            names(&read),
            [
                ".dockerignore",
                ".dotfile",
                ".gitignore",
                "Dockerfile",
                "keep.log",
                "main",
                "src/.gitignore",
                "src/main.js"
            ]
        );
    }

    #[test]
    fn the_same_files_have_the_same_digest() {
        let digest = |text: &str| {
            let folder = folder(&[("a", text), ("b/c", "y"), ("b.d", "z")]);
            let read = Folder::read(folder.path(), &[]).unwrap();
            assert_eq!(names(&read), ["a", "b.d", "b/c"]);
            read.list.digest()
        };
        assert_eq!(digest("x"), digest("x"));
        assert_ne!(digest("x"), digest("y"));
    }

    #[test]
    fn large_files_have_several_blocks_and_empty_ones_none() {
        let text = "x".repeat(BlockLimits::BLOCK) + "y";
        let folder = folder(&[("large", &text), ("none", "")]);
        symlink("../large", folder.path().join("way")).unwrap();
        let program = folder.path().join("none");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let read = Folder::read(folder.path(), &[]).unwrap();
        let counts: Vec<_> = read.files.iter().map(|file| (file.mode, file.blocks.len())).collect();
        assert_eq!(counts, [(FileMode::Regular, 2), (FileMode::Executable, 0), (FileMode::Link, 1)]);
        for (id, place) in &read.places {
            let file = &read.files[place.file];
            let path = folder.path().join(&file.path);
            let block = super::read(&path, file.mode, place.offset, place.length).unwrap();
            assert_eq!(BlockId::of(&block), *id);
        }
    }
}
