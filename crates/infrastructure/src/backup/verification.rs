//! Compares an archive with its manifest, without writing anything.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufReader, Read},
    path::Path,
};

use flate2::bufread::GzDecoder;
use launchway_database::tables::{Digester, TableDigest};
use sha2::{Digest as _, Sha256};

use super::{
    BackupError, LARGEST_PIECE, TableRecord,
    archive::piece_name,
    manifest::{FORMAT, FileRecord, Manifest},
    names::{any_path_of, path_of},
};

/// The largest manifest that is read: about a million files.
const LARGEST_MANIFEST: u64 = 256 * 1024 * 1024;
/// The most entries that an archive may have.
const MOST_ENTRIES: usize = 4_000_000;

/// Reads a whole archive and returns its manifest if the contents match it.
///
/// # Errors
/// [`BackupError::Refused`] with the reason if they do not.
pub fn verify(path: &Path) -> Result<Manifest, BackupError> {
    let mut found = Found::default();
    for_each_entry(path, |entry| found.take(entry))?;
    let manifest = found.manifest.take().ok_or_else(cut_off)?;
    if !found.is_sealed {
        return Err(cut_off());
    }
    found.compare(&manifest)?;
    Ok(manifest)
}

/// An entry of an archive: a regular file with a UTF-8 name.
pub(super) struct Entry<'a> {
    pub(super) name: String,
    pub(super) size: u64,
    pub(super) content: &'a mut dyn Read,
}

impl Entry<'_> {
    /// Reads the whole entry, and fails if it has more than `most` bytes.
    pub(super) fn bytes(&mut self, most: u64) -> Result<Vec<u8>, BackupError> {
        if self.size > most {
            return Err(damaged(&format!("`{}` claims to have {} bytes", self.name, self.size)));
        }
        let mut bytes = Vec::new();
        self.content.read_to_end(&mut bytes).map_err(unreadable)?;
        Ok(bytes)
    }
}

/// Calls `take` for each entry of an archive, up to its end.
pub(super) fn for_each_entry(
    path: &Path,
    mut take: impl FnMut(Entry<'_>) -> Result<(), BackupError>,
) -> Result<(), BackupError> {
    let file = File::open(path).map_err(super::at(path))?;
    let mut archive = tar::Archive::new(GzDecoder::new(BufReader::new(file)));
    let mut count = 0;
    for entry in archive.entries().map_err(unreadable)? {
        let mut entry = entry.map_err(unreadable)?;
        count += 1;
        if count > MOST_ENTRIES {
            return Err(damaged("it has too many entries"));
        }
        let name = entry.path_bytes().into_owned();
        let name =
            String::from_utf8(name).map_err(|_not_text| damaged("an entry has a name that is not text"))?;
        if entry.header().entry_type() != tar::EntryType::Regular {
            return Err(damaged(&format!("`{}` is no plain file", shown(&name))));
        }
        let size = entry.size();
        take(Entry { name, size, content: &mut entry })?;
    }
    // The rest after the last entry has to be valid too, and so has the end of the compressed data.
    let mut rest = archive.into_inner();
    io::copy(&mut rest, &mut io::sink()).map_err(unreadable)?;
    Ok(())
}

/// The error for an archive that cannot be trusted.
pub(super) fn damaged(why: &str) -> BackupError {
    BackupError::Refused(format!("the archive is damaged, or no backup of Launchway: {why}"))
}

fn unreadable(error: io::Error) -> BackupError {
    damaged(&error.to_string())
}

fn cut_off() -> BackupError {
    damaged("its end is missing")
}

/// Makes a name safe to print to a terminal.
fn shown(name: &str) -> String {
    name.chars().filter(|letter| !letter.is_control()).take(200).collect()
}

/// The contents of an archive as read so far.
#[derive(Default)]
struct Found {
    tables: BTreeMap<String, (u32, Digester)>,
    files: BTreeMap<String, (u64, String)>,
    manifest: Option<Manifest>,
    manifest_hash: String,
    is_sealed: bool,
}

impl Found {
    fn take(&mut self, mut entry: Entry<'_>) -> Result<(), BackupError> {
        if self.is_sealed {
            return Err(damaged("something follows its end"));
        }
        if let Some(rest) = entry.name.strip_prefix("tables/") {
            let table = rest.split('/').next().unwrap_or_default().to_owned();
            return self.piece(&table, &mut entry);
        }
        if let Some(name) = entry.name.strip_prefix("files/") {
            let name = name.to_owned();
            return self.file(name, &mut entry);
        }
        match entry.name.as_str() {
            "manifest.json" if self.manifest.is_none() => {
                let text = entry.bytes(LARGEST_MANIFEST)?;
                self.manifest_hash = data_encoding::HEXLOWER.encode(&Sha256::digest(&text));
                self.manifest = Some(read_manifest(&text)?);
                Ok(())
            }
            "manifest.sha256" if self.manifest.is_some() => {
                let text = entry.bytes(1024)?;
                if text != format!("{}  manifest.json\n", self.manifest_hash).into_bytes() {
                    return Err(damaged("the manifest was changed"));
                }
                self.is_sealed = true;
                Ok(())
            }
            other => Err(damaged(&format!("nothing in it is called `{}`", shown(other)))),
        }
    }

    fn piece(&mut self, table: &str, entry: &mut Entry<'_>) -> Result<(), BackupError> {
        let (pieces, digester) = self.tables.entry(table.to_owned()).or_default();
        *pieces += 1;
        if entry.name != piece_name(table, *pieces) {
            return Err(damaged(&format!("`{}` is not where it belongs", shown(&entry.name))));
        }
        for line in lines(&entry.bytes(LARGEST_PIECE)?)? {
            digester.add(line);
        }
        Ok(())
    }

    fn file(&mut self, name: String, entry: &mut Entry<'_>) -> Result<(), BackupError> {
        if path_of(&name).is_none() {
            return Err(damaged(&format!("`{}` does not belong into a data directory", shown(&name))));
        }
        let mut hash = Sha256::new();
        let mut buffer = vec![0; 64 * 1024];
        let mut size = 0;
        loop {
            let read = entry.content.read(&mut buffer).map_err(unreadable)?;
            if read == 0 {
                break;
            }
            size += read as u64;
            hash.update(&buffer[..read]);
        }
        let hash = data_encoding::HEXLOWER.encode(&hash.finalize());
        match self.files.insert(name.clone(), (size, hash)) {
            Some(_) => Err(damaged(&format!("`{}` is in it twice", shown(&name)))),
            None => Ok(()),
        }
    }

    fn compare(mut self, manifest: &Manifest) -> Result<(), BackupError> {
        for TableRecord { name, rows, sha256, .. } in &manifest.tables {
            let (_, digester) = self.tables.remove(name).unwrap_or_default();
            let expected = TableDigest { rows: *rows, sha256: sha256.clone() };
            if digester.finish() != expected {
                return Err(damaged(&format!("the table `{}` is not what it was", shown(name))));
            }
        }
        for FileRecord { path, size, sha256, .. } in &manifest.files {
            if self.files.remove(path) != Some((*size, sha256.clone())) {
                return Err(damaged(&format!("the file `{}` is not what it was", shown(path))));
            }
        }
        let other = self.tables.keys().chain(self.files.keys()).next();
        match other {
            Some(name) => Err(damaged(&format!("its manifest does not know `{}`", shown(name)))),
            None => Ok(()),
        }
    }
}

/// Splits a piece into lines; fails if the last one is not terminated.
pub(super) fn lines(piece: &[u8]) -> Result<Vec<&str>, BackupError> {
    let text =
        std::str::from_utf8(piece).map_err(|_not_text| damaged("a table has a value that is not text"))?;
    let text = text.strip_suffix('\n').ok_or_else(|| damaged("a table ends in the middle of a line"))?;
    Ok(text.split('\n').collect())
}

fn read_manifest(text: &[u8]) -> Result<Manifest, BackupError> {
    let value: serde_json::Value =
        serde_json::from_slice(text).map_err(|_not_json| damaged("its manifest cannot be read"))?;
    match value["format"].as_u64() {
        Some(format) if format == u64::from(FORMAT) => {}
        Some(format) => {
            return Err(BackupError::Refused(format!(
                "the archive has the form {format}, and this version of Launchway reads the form {FORMAT}: use a newer version"
            )));
        }
        None => return Err(damaged("its manifest cannot be read")),
    }
    let manifest: Manifest =
        serde_json::from_value(value).map_err(|_other_form| damaged("its manifest cannot be read"))?;
    let files = manifest.files.iter().map(|file| &file.path);
    let links = manifest.links.iter().map(|link| &link.path);
    for name in files.chain(links).chain(&manifest.folders) {
        if path_of(name).is_none() {
            return Err(damaged(&format!("`{}` does not belong into a data directory", shown(name))));
        }
    }
    for link in &manifest.links {
        if !link.path.starts_with("sites/") || any_path_of(&link.target).is_none() {
            return Err(damaged(&format!("the link `{}` is not one of a site", shown(&link.path))));
        }
    }
    Ok(manifest)
}
