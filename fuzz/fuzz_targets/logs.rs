//! Whatever a program prints, in whatever pieces: its lines are bounded, hold nothing that is not seen,
//! and no secret.
//!
//! An input is secrets and then the output, with a NUL byte behind each secret.
#![no_main]

use data_encoding::{BASE64, BASE64URL_NOPAD};
use launchway_domain::logs::{LONGEST_LINE, LineAssembler, MASK, Masker, clean};
use libfuzzer_sys::fuzz_target;

/// Shorter texts are no secrets.
const SHORTEST: usize = 6;
/// The largest output: longer than the part of a line that is searched.
const MOST: usize = 120_000;
/// The room for the words that tell how much is missing.
const MARKER: usize = 40;

fuzz_target!(|data: &[u8]| {
    let mut parts: Vec<&[u8]> = data.split(|byte| *byte == 0).collect();
    let printed = parts.pop().unwrap_or_default();
    let secrets: Vec<&str> = parts.into_iter().filter_map(|part| std::str::from_utf8(part).ok()).collect();
    let masker = Masker::new(secrets.iter().copied());
    // Now and then more than is looked at of a line; not always, because it takes long.
    let is_flood = data.len().is_multiple_of(32);
    let times = if is_flood { MOST / printed.len().max(1) } else { 1 };
    let output = printed.repeat(times);
    let lines = lines_of(&[&output], &masker);
    for line in &lines {
        assert!(line.len() <= LONGEST_LINE + MARKER, "{}", line.len());
        assert!(line.chars().all(|c| c == '\t' || !c.is_control()), "{line:?}");
        assert_eq!(&clean(line.as_bytes()), line);
        secrets.iter().for_each(|secret| is_hidden(secret, line));
    }
    assert_eq!(lines_of(&in_pieces(&output, data), &masker), lines);
    secrets.iter().for_each(|secret| is_hidden_in_other_forms(secret, &masker));
    secrets.iter().filter(|_| is_flood).for_each(|secret| is_hidden_in_a_flood(secret, &masker));
});

fn lines_of(pieces: &[&[u8]], masker: &Masker) -> Vec<String> {
    let mut assembler = LineAssembler::default();
    let mut lines: Vec<String> = pieces.iter().flat_map(|piece| assembler.push(piece, masker)).collect();
    lines.extend(assembler.finish(masker));
    lines
}

/// The output cut in pieces, each as long as a byte says.
fn in_pieces<'a>(mut output: &'a [u8], cuts: &[u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for cut in cuts {
        let (piece, rest) = output.split_at(usize::from(*cut).min(output.len()));
        pieces.push(piece);
        output = rest;
    }
    pieces.push(output);
    pieces
}

/// Returns the part of the output that a line shows: without the words about what is missing, and without what of
/// them or of a mask was cut.
fn shown(line: &str) -> &str {
    let text = match line.rsplit_once(" … [") {
        Some((text, marker)) if marker.ends_with(" bytes more]") => text,
        _ => line,
    };
    let cut = (1..MASK.len()).find(|length| text.ends_with(&MASK[..*length])).unwrap_or_default();
    &text[..text.len() - cut]
}

/// No line of a secret stands between the masks.
fn is_hidden(secret: &str, line: &str) {
    for part in secret.split(['\n', '\r']).map(|part| clean(part.as_bytes())) {
        let is_shown = part.len() >= SHORTEST && shown(line).split(MASK).any(|text| text.contains(&part));
        assert!(!is_shown, "{part:?} in {line:?}");
    }
}

fn is_hidden_in_other_forms(secret: &str, masker: &Masker) {
    // Characters at both ends depend on what stands around, and too few would be left of a short one.
    if secret.len() < SHORTEST + 2 {
        return;
    }
    let bytes = secret.as_bytes();
    let in_url: String = bytes.iter().map(|byte| format!("%{byte:02X}")).collect();
    let mut forms =
        vec![BASE64.encode(bytes), BASE64.encode(&[b"ab", bytes].concat()), BASE64URL_NOPAD.encode(bytes)];
    if bytes.iter().all(|byte| !byte.is_ascii_alphanumeric() && !b"-._~".contains(byte)) {
        forms.push(in_url);
    }
    for form in forms {
        assert!(masker.mask(&form).contains(MASK), "{form}");
    }
}

/// A line that is longer than what is looked at, and of nothing but a secret, shows nothing of it.
fn is_hidden_in_a_flood(secret: &str, masker: &Masker) {
    let is_plain = clean(secret.as_bytes()) == secret && !secret.contains('\t');
    if secret.len() < SHORTEST || !is_plain {
        return;
    }
    let line = lines_of(&[secret.repeat(MOST / secret.len()).as_bytes()], masker).remove(0);
    assert_eq!(shown(&line).replace(MASK, ""), "", "{secret:?}");
}
