//! Finds secrets in any output, also when they are encoded.

use std::collections::BTreeSet;

use aho_corasick::AhoCorasick;
use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD, HEXLOWER, HEXUPPER};

/// A secret that must not appear anywhere.
#[derive(Debug, Clone)]
pub(crate) struct Canary {
    pub(crate) what: &'static str,
    pub(crate) value: String,
}

/// Searches for every canary at once.
pub(crate) struct Net {
    searcher: AhoCorasick,
    /// The canary of each pattern.
    owners: Vec<usize>,
    canaries: Vec<Canary>,
}

impl Net {
    pub(crate) fn of(canaries: Vec<Canary>) -> Self {
        let forms = canaries.iter().enumerate().flat_map(|(number, canary)| {
            forms(&canary.value).into_iter().map(move |form| (number, form)).collect::<Vec<_>>()
        });
        let (owners, forms): (Vec<_>, Vec<_>) = forms.unzip();
        Self { searcher: AhoCorasick::new(forms).expect("few and short patterns"), owners, canaries }
    }

    /// Returns the number of patterns.
    pub(crate) fn forms(&self) -> usize {
        self.owners.len()
    }

    /// Returns the names of the canaries found.
    pub(crate) fn caught(&self, bytes: &[u8]) -> BTreeSet<&'static str> {
        let found = self.searcher.find_overlapping_iter(bytes);
        found.map(|found| self.canaries[self.owners[found.pattern().as_usize()]].what).collect()
    }
}

/// A value as it is, in hexadecimal digits, and in base64 at every alignment.
fn forms(value: &str) -> Vec<String> {
    let mut forms =
        vec![value.to_owned(), HEXLOWER.encode(value.as_bytes()), HEXUPPER.encode(value.as_bytes())];
    for before in 0..3 {
        let bytes = [&vec![0; before][..], value.as_bytes()].concat();
        // The first and the last character may also contain bits of adjacent data.
        let (first, last) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
        forms.push(BASE64_NOPAD.encode(&bytes)[first..last].to_owned());
        forms.push(BASE64URL_NOPAD.encode(&bytes)[first..last].to_owned());
    }
    forms.sort();
    forms.dedup();
    forms
}

#[cfg(test)]
mod tests {
    use data_encoding::BASE64;

    use super::*;

    #[test]
    fn a_canary_is_found_in_every_form_and_nothing_else_is() {
        let net = Net::of(vec![
            Canary { what: "password", value: "canary-1f2e3d4c".to_owned() },
            Canary { what: "token", value: "canary-5b6a7988".to_owned() },
        ]);
        for before in ["", "a", "ab", "abc", "abcd"] {
            let text = format!("{before}canary-1f2e3d4c, and more");
            for form in [
                text.clone(),
                BASE64.encode(text.as_bytes()),
                HEXLOWER.encode(text.as_bytes()),
                HEXUPPER.encode(text.as_bytes()),
            ] {
                assert_eq!(net.caught(form.as_bytes()), BTreeSet::from(["password"]), "{form}");
            }
        }
        assert_eq!(net.caught(b"canary-1f2e3d4d"), BTreeSet::new());
    }
}
