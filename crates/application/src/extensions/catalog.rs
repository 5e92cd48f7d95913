//! The catalog: definitions that are part of Launchway.

use std::{collections::HashMap, sync::Arc};

use launchway_domain::{
    extensions::{Definition, Extension, ExtensionKey, ExtensionRepository, Validation, Write, content_hash},
    replicas::ReleaseVersion,
    store::{self, StoreError},
};

use super::description::{described, unusable};
use crate::ServiceContext;

/// A definition of the catalog: the name of its file, which is its key, and its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogFile<'a> {
    /// The name of the file without its extension.
    pub name: &'a str,
    /// The text of the definition.
    pub yaml: &'a str,
}

/// Updates the catalog.
pub struct Catalog {
    extensions: Arc<dyn ExtensionRepository>,
    context: ServiceContext,
}

impl Catalog {
    /// Returns the use case over `extensions`.
    pub fn new(extensions: Arc<dyn ExtensionRepository>, context: ServiceContext) -> Self {
        Self { extensions, context }
    }

    /// Updates the catalog to `files` of this `version`, and returns the number of changed entries. An invalid
    /// definition is logged, never replaces a valid one, and does not affect the others. The catalog of a newer version
    /// stays as it is.
    ///
    /// # Errors
    /// [`StoreError`] when the commit fails.
    pub async fn load(
        &self,
        files: &[CatalogFile<'_>],
        version: ReleaseVersion,
    ) -> Result<usize, StoreError> {
        let known = self.extensions.catalog().await?;
        let known: HashMap<_, _> =
            known.into_iter().map(|(key, validation, hash)| (key, (validation, hash))).collect();
        let (mut keep, mut writes): (Vec<ExtensionKey>, Vec<store::Write>) = (Vec::new(), Vec::new());
        for file in files {
            let Ok(key) = file.name.parse::<ExtensionKey>() else {
                tracing::error!(file = file.name, "catalog file has an invalid name");
                continue;
            };
            keep.push(key.clone());
            let earlier = known.get(&key);
            if earlier.is_some_and(|(_, hash)| *hash == content_hash(file.yaml)) {
                continue;
            }
            if let Some(entry) = self.entry(key, file, earlier.map(|(validation, _)| *validation)) {
                writes.push(Write::Publish(Box::new(entry)).into());
            }
        }
        let changed = writes.len();
        if changed > 0 || known.keys().any(|key| !keep.contains(key)) {
            writes.push(Write::Withdraw { keep, at: self.context.clock.now() }.into());
            writes.insert(0, Write::ClaimCatalog(version).into());
            match self.context.store.commit(writes).await {
                Err(StoreError::Stale) => {
                    tracing::info!("catalog of a newer version kept");
                    return Ok(0);
                }
                committed => committed?,
            }
        }
        Ok(changed)
    }

    /// Returns the entry of a file; `None` if it is invalid and there is a valid one already.
    fn entry(
        &self,
        key: ExtensionKey,
        file: &CatalogFile<'_>,
        earlier: Option<Validation>,
    ) -> Option<Extension> {
        let yaml = file.yaml.to_owned();
        match Definition::parse(file.yaml) {
            Ok(definition) if definition.metadata.id == key => {
                Some(described(&definition, yaml, &self.context))
            }
            Ok(definition) => {
                let id = definition.metadata.id.as_str();
                tracing::error!(file = file.name, id, "catalog definition does not match its file name");
                None
            }
            Err(invalid) => {
                tracing::error!(file = file.name, problems = %invalid, "catalog definition is invalid");
                match earlier {
                    Some(Validation::Valid) => None,
                    _ => Some(unusable(key, yaml, &invalid, &self.context)),
                }
            }
        }
    }
}
