//! Whatever is written, a template is read or refused; no value becomes part of a shell's text, and
//! none is read for places again.
#![no_main]

use launchway_domain::extensions::{Template, Values, environment_name};
use libfuzzer_sys::fuzz_target;

/// A marker that no input contains, so that it can be counted.
const MARK: &str = "\u{10fffd}";

fuzz_target!(|text: &str| {
    if text.contains(MARK) {
        return;
    }
    let Ok(template) = Template::parse(text) else { return };
    let names: Vec<&str> = template.names().collect();
    let rendered = |value: &str| {
        let values: Values = names.iter().map(|name| ((*name).to_owned(), value.to_owned())).collect();
        template.render(&values)
    };

    // Each place is filled once, by what its value is.
    assert_eq!(rendered(MARK).matches(MARK).count(), names.len());
    assert_eq!(rendered(MARK).replace(MARK, "{{ x }}"), rendered("{{ x }}"));
    assert_eq!(rendered(MARK).replace(MARK, ""), template.render(&Values::new()));
    if names.is_empty() {
        assert_eq!(rendered(""), text.replace("\\{{", "{{"));
    }

    let Ok(shell) = template.for_shell() else { return };
    let references: usize = {
        let mut distinct = names.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let reference = |name: &&str| shell.matches(&format!("${{{}}}", environment_name(name))).count();
        distinct.iter().map(reference).sum()
    };
    assert!(references >= names.len(), "{shell:?}");
    if names.is_empty() {
        assert_eq!(shell, rendered(""));
    }
});
