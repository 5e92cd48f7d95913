//! Looking for texts that contain something, ignoring case.

/// A text as searches and filters compare it. Letter by letter, so that a part of a text comes out
/// as the same part of the whole.
pub(super) fn lower_case(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// The pattern of texts that contain `search`, ignoring case, in which nothing has a meaning of its
/// own.
pub(super) fn containing(search: &str) -> String {
    let literal = lower_case(search).replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_");
    format!("%{literal}%")
}
