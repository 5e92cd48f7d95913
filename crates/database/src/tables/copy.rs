//! Copies a database.

use launchway_system::files::remove;

use super::{Filler, TableDigest, Tables, TablesError};
use crate::DatabaseUrl;

/// Copies everything from one database to another one, which has to be empty. The copy is read back and
/// compared before it is committed. Returns the digest of each table.
///
/// # Errors
/// [`TablesError`]; then the target is unchanged. The source is never changed.
pub fn copy(from: &DatabaseUrl, to: &DatabaseUrl) -> Result<Vec<(String, TableDigest)>, TablesError> {
    let mut source = Tables::snapshot(from)?;
    let schema = source.schema()?;
    let is_there = matches!(to, DatabaseUrl::Sqlite(file) if file.symlink_metadata().is_ok());
    let copied = fill(&mut source, to, &schema);
    if let (Err(_), DatabaseUrl::Sqlite(file), false) = (&copied, to, is_there) {
        for suffix in ["", "-wal", "-shm"] {
            let mut name = file.clone().into_os_string();
            name.push(suffix);
            // The original error is reported; the next attempt finds what is left.
            let _left = remove(name.as_ref());
        }
    }
    copied
}

fn fill(
    source: &mut Tables,
    to: &DatabaseUrl,
    schema: &str,
) -> Result<Vec<(String, TableDigest)>, TablesError> {
    let mut target = Tables::fresh(to, schema)?;
    let there = target.list()?;
    let mut digests = Vec::new();
    for table in source.list()? {
        let twin = there.iter().find(|twin| twin.name == table.name);
        let twin = twin.filter(|twin| twin.column_names() == table.column_names()).cloned();
        let twin = twin.ok_or_else(|| {
            TablesError::Refused(format!("the other database has another table `{}`", table.name))
        })?;
        let mut filler = Filler::of(twin);
        let digest = source.read(&table, |line| filler.add(&mut target, line))?;
        filler.finish(&mut target)?;
        digests.push((table.name, digest));
    }
    for table in &there {
        let found = target.read(table, |_| Ok(()))?;
        let expected = digests.iter().find(|(name, _)| *name == table.name).map(|(_, digest)| digest);
        if expected != Some(&found) {
            return Err(TablesError::Refused(format!(
                "the other database does not keep the table `{}` as it is",
                table.name
            )));
        }
    }
    target.keep()?;
    Ok(digests)
}
