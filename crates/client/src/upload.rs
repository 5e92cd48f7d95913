//! The files of a folder as an archive, for a server that cannot fetch them.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Seek as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};
use ignore::WalkBuilder;
use tar::{Builder, EntryType, Header};

use crate::failure::{Outcome, failed};

/// A packed folder.
#[derive(Debug)]
pub(crate) struct Upload {
    pub(crate) file: File,
    pub(crate) files: usize,
    pub(crate) bytes: u64,
}

/// Packs the files of `folder` that neither `.gitignore` nor `.dockerignore` excludes. Those of `needed` are packed in any
/// case: a `.dockerignore` may exclude even the Dockerfile.
pub(crate) fn pack(folder: &Path, needed: &[&str]) -> Outcome<Upload> {
    let cannot = || failed(format!("the files of {} cannot be packed", folder.display()));
    let files = files(folder, needed).map_err(cannot())?;
    let file = tempfile::tempfile().map_err(cannot())?;
    let packed = archive(folder, &files, file).and_then(|mut file| {
        let bytes = file.stream_position()?;
        file.rewind()?;
        Ok((file, bytes))
    });
    let (file, bytes) = packed.map_err(cannot())?;
    Ok(Upload { file, files: files.len(), bytes })
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

fn archive(folder: &Path, files: &BTreeSet<PathBuf>, file: File) -> io::Result<File> {
    let mut archive = Builder::new(GzEncoder::new(file, Compression::fast()));
    for path in files {
        let place = folder.join(path);
        let metadata = fs::symlink_metadata(&place)?;
        let mut header = Header::new_gnu();
        // The same files make the same archive.
        header.set_mtime(0);
        header.set_size(0);
        if metadata.is_symlink() {
            header.set_entry_type(EntryType::Symlink);
            header.set_mode(0o777);
            archive.append_link(&mut header, path, fs::read_link(&place)?)?;
        } else {
            let is_executable = metadata.permissions().mode() & 0o100 != 0;
            header.set_mode(if is_executable { 0o755 } else { 0o644 });
            let content = fs::read(&place)?;
            header.set_size(content.len() as u64);
            archive.append_data(&mut header, path, content.as_slice())?;
        }
    }
    archive.into_inner()?.finish()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use flate2::read::GzDecoder;

    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn names(upload: Upload) -> Vec<String> {
        let mut archive = tar::Archive::new(GzDecoder::new(upload.file));
        let entries = archive.entries().unwrap();
        entries.map(|entry| entry.unwrap().path().unwrap().display().to_string()).collect()
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
        let packed = pack(folder.path(), &["Dockerfile", "missing"]).unwrap();
        assert_eq!(packed.files, 8);
        assert_eq!(
            names(packed),
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
    fn the_same_files_make_the_same_archive() {
        let packed = || {
            let folder = folder(&[("a", "x"), ("b/c", "y")]);
            let mut upload = pack(folder.path(), &[]).unwrap();
            let mut bytes = Vec::new();
            io::Read::read_to_end(&mut upload.file, &mut bytes).unwrap();
            assert_eq!(bytes.len() as u64, upload.bytes);
            bytes
        };
        assert_eq!(packed(), packed());
    }
}
