//! Restores an archive into an empty data directory and an empty database.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File, FileTimes, OpenOptions},
    io::Write as _,
    os::unix::fs::{OpenOptionsExt as _, symlink},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use launchway_database::{
    DatabaseUrl,
    tables::{Filler, Table, Tables},
};
use launchway_domain::ids::ApplicationId;
use launchway_system::files::{make_private_folder, remove};
use sha2::{Digest as _, Sha256};

use super::{
    BackupError, INSTANCE_ID, Installation, LARGEST_PIECE, at,
    manifest::{FileRecord, Manifest},
    names::{FOLDERS, any_path_of, path_of},
    private_file::{replace_private_file, sync_folder_of},
    verification::{Entry, damaged, for_each_entry, lines},
};

use crate::data_dir::UNFINISHED;

/// The lock file: a data directory with nothing else counts as empty.
const LOCK: &str = "launchway.lock";

/// The result of a restore, with what is left to do.
#[derive(Debug)]
pub struct Rebuilt {
    /// The applications that ran as containers, by their ids and names.
    pub containers: Vec<(ApplicationId, String)>,
}

/// Restores an archive that was [verified](super::verify) into an empty data directory and an empty
/// database. The key is written to the data directory, unless it is kept elsewhere.
///
/// # Errors
/// [`BackupError::Refused`] if the data directory or the database is not empty, or if the archive is from a
/// newer version. After an error nothing is left.
pub fn restore(
    path: &Path,
    manifest: &Manifest,
    installation: Installation<'_>,
    key: Option<(&str, &str)>,
) -> Result<Rebuilt, BackupError> {
    refuse_unless_empty(installation)?;
    refuse_without_room(installation.data_dir, manifest)?;
    let restored = fill(path, manifest, installation, key);
    if restored.is_err() {
        clear(installation, key);
    }
    restored
}

fn fill(
    path: &Path,
    manifest: &Manifest,
    installation: Installation<'_>,
    key: Option<(&str, &str)>,
) -> Result<Rebuilt, BackupError> {
    // Before anything else: as long as this folder exists, no server starts.
    let draft = installation.data_dir.join(UNFINISHED);
    make_private_folder(&draft).map_err(at(&draft))?;
    sync_folder_of(&draft)?;
    let mut tables = Tables::fresh(installation.database, &manifest.schema)?;
    unpack(path, manifest, &draft, &mut tables)?;
    refuse_two_installations(manifest, &mut tables)?;
    put_in_place(&draft, installation.data_dir, key)?;
    let containers = tables.live_in_containers()?;
    tables.keep()?;
    remove(&draft).map_err(at(&draft))?;
    sync_folder_of(&draft)?;
    Ok(Rebuilt { containers })
}

/// Rejects a data directory and a database of different installations: no server would start with them.
fn refuse_two_installations(manifest: &Manifest, tables: &mut Tables) -> Result<(), BackupError> {
    let in_database = tables.installation_id()?.map(|id| id.to_string());
    match (in_database, &manifest.instance_id) {
        (Some(one), Some(other)) if one != *other => Err(damaged(&format!(
            "its database belongs to installation {one}, and its files to installation {other}"
        ))),
        _ => Ok(()),
    }
}

fn unpack(path: &Path, manifest: &Manifest, draft: &Path, tables: &mut Tables) -> Result<(), BackupError> {
    let mut unpacking = Unpacking::new(manifest, draft, tables)?;
    for folder in &manifest.folders {
        let place = draft.join(path_of(folder).ok_or_else(|| damaged("a folder has no place"))?);
        make_private_folder(&place).map_err(at(&place))?;
    }
    for_each_entry(path, |entry| unpacking.take(entry))?;
    unpacking.finish()?;
    make_links(manifest, draft)
}

/// The state of unpacking an archive.
struct Unpacking<'a> {
    draft: &'a Path,
    tables: &'a mut Tables,
    known: BTreeMap<String, Table>,
    files: BTreeMap<&'a str, &'a FileRecord>,
    manifest: &'a Manifest,
    filler: Option<Filler>,
}

impl<'a> Unpacking<'a> {
    fn new(manifest: &'a Manifest, draft: &'a Path, tables: &'a mut Tables) -> Result<Self, BackupError> {
        let known: BTreeMap<String, Table> =
            tables.list()?.into_iter().map(|table| (table.name.clone(), table)).collect();
        let expected: BTreeMap<_, _> =
            manifest.tables.iter().map(|table| (table.name.clone(), table.columns.clone())).collect();
        let there: BTreeMap<_, _> =
            known.iter().map(|(name, table)| (name.clone(), table.column_names())).collect();
        if expected != there {
            return Err(damaged("its tables are not those of its version"));
        }
        let files = manifest.files.iter().map(|file| (file.path.as_str(), file)).collect();
        Ok(Self { draft, tables, known, files, manifest, filler: None })
    }

    fn take(&mut self, mut entry: Entry<'_>) -> Result<(), BackupError> {
        if let Some(rest) = entry.name.strip_prefix("tables/") {
            let name = rest.split('/').next().unwrap_or_default();
            if self.filler.as_ref().is_none_or(|filler| filler.table().name != name) {
                let table = self.known.get(name).cloned().ok_or_else(|| damaged("it has another table"))?;
                self.finish_table()?;
                self.filler = Some(Filler::of(table));
            }
            let piece = entry.bytes(LARGEST_PIECE)?;
            let Some(filler) = &mut self.filler else { return Ok(()) };
            for line in lines(&piece)? {
                filler.add(self.tables, line)?;
            }
        } else if let Some(name) = entry.name.strip_prefix("files/") {
            let record = *self.files.get(name).ok_or_else(|| damaged("it has another file"))?;
            self.file(record, &mut entry)?;
        }
        Ok(())
    }

    fn file(&mut self, record: &FileRecord, entry: &mut Entry<'_>) -> Result<(), BackupError> {
        let place = self.draft.join(path_of(&record.path).ok_or_else(|| damaged("a file has no place"))?);
        let mode = 0o600 | (record.mode & 0o755);
        let made = OpenOptions::new().write(true).create_new(true).mode(mode).open(&place);
        let mut file = made.map_err(at(&place))?;
        let mut hash = Sha256::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = entry.content.read(&mut buffer).map_err(|error| damaged(&error.to_string()))?;
            if read == 0 {
                break;
            }
            hash.update(&buffer[..read]);
            file.write_all(&buffer[..read]).map_err(at(&place))?;
        }
        if data_encoding::HEXLOWER.encode(&hash.finalize()) != record.sha256 {
            return Err(damaged("a file changed while it was read"));
        }
        let modified = moment(record.modified);
        file.set_times(FileTimes::new().set_modified(modified)).map_err(at(&place))
    }

    fn finish_table(&mut self) -> Result<(), BackupError> {
        match self.filler.take() {
            Some(filler) => Ok(filler.finish(self.tables)?),
            None => Ok(()),
        }
    }

    /// Compares the restored tables with the manifest, reading them from the database.
    fn finish(mut self) -> Result<(), BackupError> {
        self.finish_table()?;
        for record in &self.manifest.tables {
            let table = self.known.get(&record.name).ok_or_else(|| damaged("a table is missing"))?;
            let digest = self.tables.read(table, |_| Ok(()))?;
            if digest.rows != record.rows || digest.sha256 != record.sha256 {
                return Err(BackupError::Refused(format!(
                    "the database does not keep the table `{}` as it was",
                    record.name
                )));
            }
        }
        Ok(())
    }
}

/// Creates the links after all files and folders, so that nothing is ever written through one. The target
/// of each must be within its release.
fn make_links(manifest: &Manifest, draft: &Path) -> Result<(), BackupError> {
    let leads_out = || damaged("a link points outside its site");
    let mut links = BTreeMap::new();
    for link in &manifest.links {
        let (path, target) = path_of(&link.path).zip(any_path_of(&link.target)).ok_or_else(leads_out)?;
        links.insert(path, target);
    }
    let places: BTreeSet<&PathBuf> = links.keys().collect();
    for (path, target) in &links {
        if target.is_absolute() || path.ancestors().skip(1).any(|above| places.contains(&above.to_owned())) {
            return Err(leads_out());
        }
        let place = draft.join(path);
        symlink(target, &place).map_err(at(&place))?;
    }
    for path in links.keys() {
        // `sites/<application>/<deployment>`
        let release: PathBuf = path.components().take(3).collect();
        let release = draft.join(release).canonicalize().map_err(at(draft))?;
        let is_inside = path.components().count() > 3
            && draft.join(path).canonicalize().is_ok_and(|target| target.starts_with(&release));
        if !is_inside {
            return Err(leads_out());
        }
    }
    Ok(())
}

fn put_in_place(draft: &Path, data_dir: &Path, key: Option<(&str, &str)>) -> Result<(), BackupError> {
    if let Some((name, text)) = key {
        replace_private_file(&data_dir.join(name), text, false)?;
    }
    // Syncs everything that was written, at once.
    let folder = File::open(draft).map_err(at(draft))?;
    rustix::fs::syncfs(&folder).map_err(|error| at(draft)(error.into()))?;
    for name in FOLDERS.into_iter().chain([INSTANCE_ID]) {
        let (from, to) = (draft.join(name), data_dir.join(name));
        if from.symlink_metadata().is_ok() {
            fs::rename(&from, &to).map_err(at(&to))?;
        }
    }
    sync_folder_of(draft)
}

/// Removes everything that was restored so far. Errors are ignored: the original error is reported, and the
/// next attempt finds what is left.
fn clear(installation: Installation<'_>, key: Option<(&str, &str)>) {
    let _left = remove(&installation.data_dir.join(UNFINISHED));
    for name in FOLDERS.into_iter().chain([INSTANCE_ID]).chain(key.map(|(name, _)| name)) {
        let _left = remove(&installation.data_dir.join(name));
    }
    if let DatabaseUrl::Sqlite(file) = installation.database {
        for suffix in ["", "-wal", "-shm"] {
            let mut name = file.clone().into_os_string();
            name.push(suffix);
            let _left = remove(Path::new(&name));
        }
    }
}

fn refuse_unless_empty(installation: Installation<'_>) -> Result<(), BackupError> {
    let data_dir = installation.data_dir;
    if let DatabaseUrl::Sqlite(file) = installation.database
        && file.symlink_metadata().is_ok()
    {
        return Err(BackupError::Refused(format!("there is a database at `{}` already", file.display())));
    }
    for entry in fs::read_dir(data_dir).map_err(at(data_dir))? {
        let name = entry.map_err(at(data_dir))?.file_name();
        if name != LOCK {
            return Err(BackupError::Refused(format!(
                "the data directory `{}` is not empty, it has `{}`: restore into another one, or empty it first",
                data_dir.display(),
                name.display()
            )));
        }
    }
    Ok(())
}

fn refuse_without_room(data_dir: &Path, manifest: &Manifest) -> Result<(), BackupError> {
    let needed = manifest.file_bytes();
    let free = launchway_system::files::free_bytes(data_dir).map_err(at(data_dir))?;
    if needed > free {
        return Err(BackupError::Refused(format!(
            "the files in the archive have {needed} bytes, and there is room for {free} in `{}`",
            data_dir.display()
        )));
    }
    Ok(())
}

fn moment(nanoseconds: i64) -> SystemTime {
    let distance = Duration::from_nanos(nanoseconds.unsigned_abs());
    let moment = match nanoseconds {
        0.. => SystemTime::UNIX_EPOCH.checked_add(distance),
        _ => SystemTime::UNIX_EPOCH.checked_sub(distance),
    };
    moment.unwrap_or(SystemTime::UNIX_EPOCH)
}
