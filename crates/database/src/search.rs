//! Case-insensitive search for parts of texts.

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
