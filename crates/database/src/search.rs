//! Case-insensitive search for parts of texts, by an index of trigrams.
//!
//! The rows of a log are numbered and never change. They are divided into blocks of [`blocks::ROWS`] numbers. For each
//! indexed block, the index has the rows that contain a trigram. A search intersects the rows of the trigrams of its
//! term, and checks the few that are left by the same predicate that a scan would use. The index is extended in the
//! background, block by block; what is not indexed yet is scanned.
//!
//! **Invariant:** an answer does not depend on how far the index is: the index only leaves out rows that cannot match.
//!
//! **Invariant:** no row of the index contains anything of a deleted row. Deleting lines deletes the blocks that had
//! them, in the same transaction.

pub(super) mod blocks;
mod builder;
pub(super) mod counts;
pub(super) mod index;
pub(super) mod page;
mod posting_list;
mod trigrams;

/// Converts a text to the form that searches and filters compare. Works character by character, so that a
/// part of a text yields the same part of the whole.
pub(super) fn lower_case(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// Returns the `LIKE` pattern of texts that contain `search`, ignoring case, with wildcards escaped.
pub(super) fn containing(search: &str) -> String {
    let literal = lower_case(search).replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_");
    format!("%{literal}%")
}
