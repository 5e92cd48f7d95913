//! What a rule found, collected so that one run names everything.

/// Fails with every problem, one a line, and what to do about them.
#[track_caller]
pub(crate) fn expect_none(problems: &[String], cure: &str) {
    assert!(problems.is_empty(), "\n  {}\ncure: {cure}\n", problems.join("\n  "));
}

/// What is in `left` and not in `right`, as sentences.
pub(crate) fn only_in<'a>(
    left: impl IntoIterator<Item = &'a String>,
    right: &std::collections::BTreeSet<String>,
    sentence: impl Fn(&str) -> String,
) -> Vec<String> {
    left.into_iter().filter(|name| !right.contains(*name)).map(|name| sentence(name)).collect()
}
