//! The violations of a rule, collected so that one run reports all of them.

/// Fails with every problem, one on each line, and the remedy.
#[track_caller]
pub(crate) fn expect_none(problems: &[String], cure: &str) {
    assert!(problems.is_empty(), "\n  {}\ncure: {cure}\n", problems.join("\n  "));
}

/// Returns the elements of `left` that are not in `right`, as sentences.
pub(crate) fn only_in<'a>(
    left: impl IntoIterator<Item = &'a String>,
    right: &std::collections::BTreeSet<String>,
    sentence: impl Fn(&str) -> String,
) -> Vec<String> {
    left.into_iter().filter(|name| !right.contains(*name)).map(|name| sentence(name)).collect()
}
