//! The file that is sent: the requested one, or a compressed sibling.

use std::{
    ffi::OsString,
    fs::{File, Metadata},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use http::HeaderValue;

use super::{
    media_types::content_type,
    release::{OpenError, Release},
};

/// The earliest plausible modification time. Builds that write a fixed time into all files use the first
/// times that file systems and archives support (1970, 1980, 1985).
const FIRST_REAL_TIME: Duration = Duration::from_secs(946_684_800);

/// The codings that a client accepts, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Takes([Option<Coding>; 2]);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Brotli,
    Gzip,
}

/// An open file and its metadata.
#[derive(Debug)]
pub(super) struct Representation {
    pub(super) file: File,
    pub(super) metadata: Metadata,
    pub(super) content_type: HeaderValue,
    pub(super) content_encoding: Option<HeaderValue>,
}

impl Takes {
    /// Returns the codings that a client accepts, by their weights. Among equal weights the smaller file is
    /// better.
    pub(super) fn by_weight(weight: impl Fn(&str) -> Option<u16>) -> Self {
        let of = |coding: Coding| weight(coding.name()).or_else(|| weight("*")).unwrap_or(0);
        let (brotli, gzip) = (of(Coding::Brotli), of(Coding::Gzip));
        let brotli_or_none = (brotli > 0).then_some(Coding::Brotli);
        let gzip_or_none = (gzip > 0).then_some(Coding::Gzip);
        Self(if gzip > brotli { [gzip_or_none, brotli_or_none] } else { [brotli_or_none, gzip_or_none] })
    }
}

impl Coding {
    fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Gzip => "gzip",
        }
    }

    /// Returns the path of the file beside `path` in this coding.
    fn sibling(self, path: &Path) -> PathBuf {
        let end = match self {
            Self::Brotli => ".br",
            Self::Gzip => ".gz",
        };
        let mut name = OsString::from(path);
        name.push(end);
        name.into()
    }
}

impl Representation {
    pub(super) fn open(release: &Release, path: &Path, takes: Takes) -> Result<Self, OpenError> {
        let (file, metadata) = release.file(path)?;
        Self::choose(release, path, file, metadata, takes)
    }

    /// Chooses among `file`, which is at `path`, and its siblings.
    pub(super) fn choose(
        release: &Release,
        path: &Path,
        file: File,
        metadata: Metadata,
        takes: Takes,
    ) -> Result<Self, OpenError> {
        let content_type = content_type(path);
        for coding in takes.0.into_iter().flatten() {
            match release.file(&coding.sibling(path)) {
                Err(OpenError::Missing) => {}
                Err(error) => return Err(error),
                Ok((file, metadata)) => {
                    let content_encoding = Some(HeaderValue::from_static(coding.name()));
                    return Ok(Self { file, metadata, content_type, content_encoding });
                }
            }
        }
        Ok(Self { file, metadata, content_type, content_encoding: None })
    }

    /// Returns the modification time in whole seconds, if it is known and plausible.
    pub(super) fn modified(&self) -> Option<SystemTime> {
        let modified = self.metadata.modified().ok()?;
        let age = modified.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        let is_real = age >= FIRST_REAL_TIME && modified <= SystemTime::now();
        is_real.then(|| SystemTime::UNIX_EPOCH + Duration::from_secs(age.as_secs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codings_are_taken_by_weight_and_the_smaller_first() {
        let (brotli, gzip) = (Some(Coding::Brotli), Some(Coding::Gzip));
        for (weights, expected) in [
            (&[][..], [None, None]),
            (&[("br", 1000), ("gzip", 1000)], [brotli, gzip]),
            (&[("br", 500), ("gzip", 1000)], [gzip, brotli]),
            (&[("br", 0), ("gzip", 1)], [gzip, None]),
            (&[("br", 1)], [brotli, None]),
            (&[("*", 1000)], [brotli, gzip]),
            (&[("*", 1000), ("br", 0)], [gzip, None]),
            (&[("*", 0)], [None, None]),
            (&[("deflate", 1000)], [None, None]),
        ] {
            let weight = |name: &str| weights.iter().find(|(own, _)| *own == name).map(|(_, weight)| *weight);
            assert_eq!(Takes::by_weight(weight), Takes(expected), "{weights:?}");
        }
    }
}
