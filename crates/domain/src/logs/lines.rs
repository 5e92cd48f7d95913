//! Splits output into log lines.
//!
//! **Invariant:** the output of a program becomes a log line only through `LineAssembler`, which sanitizes
//! and masks it.

use super::{Masker, clean};

/// The length limit of the text of a line, in bytes.
pub const LONGEST_LINE: usize = 16 * 1024;
/// The number of bytes of a line that are examined, so that a secret that begins inside the kept part is
/// seen whole.
const LOOKED_AT: usize = LONGEST_LINE + 72 * 1024;

/// Assembles lines from chunks of output.
#[derive(Default)]
pub struct LineAssembler {
    /// The beginning of the current line, at most [`LOOKED_AT`].
    begun: Vec<u8>,
    /// The number of bytes of it that were dropped.
    cut: usize,
}

impl LineAssembler {
    /// Takes the next chunk and returns the lines that it completes, clean and masked. A carriage return
    /// ends a line too, as progress bars use it.
    pub fn push(&mut self, piece: &[u8], masker: &Masker) -> Vec<String> {
        let mut lines = Vec::new();
        let mut parts = piece.split(|byte| matches!(byte, b'\n' | b'\r')).peekable();
        while let Some(part) = parts.next() {
            let room = LOOKED_AT - self.begun.len();
            let (kept, beyond) = part.split_at(part.len().min(room));
            self.begun.extend_from_slice(kept);
            self.cut += beyond.len();
            if parts.peek().is_some() {
                lines.extend(self.finish(masker));
            }
        }
        lines
    }

    /// Returns the last, incomplete line at the end of the output; `None` if there is none.
    pub fn finish(&mut self, masker: &Masker) -> Option<String> {
        let (begun, cut) = (std::mem::take(&mut self.begun), std::mem::take(&mut self.cut));
        (!begun.is_empty()).then(|| shown(&begun, cut, masker))
    }
}

fn shown(raw: &[u8], cut: usize, masker: &Masker) -> String {
    let text = clean(raw);
    let mut text = match cut {
        0 => masker.mask(&text),
        // Drop the character that was split: a secret may begin before it.
        _ => masker.mask_beginning(text.trim_end_matches(char::REPLACEMENT_CHARACTER)),
    };
    let mut end = text.len().min(LONGEST_LINE);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let missing = cut + (text.len() - end);
    if missing > 0 {
        text.truncate(end);
        text.push_str(&format!(" … [{missing} bytes more]"));
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::logs::MASK;

    fn lines(masker: &Masker, pieces: &[&[u8]]) -> Vec<String> {
        let mut assembler = LineAssembler::default();
        let mut lines: Vec<String> = pieces.iter().flat_map(|piece| assembler.push(piece, masker)).collect();
        lines.extend(assembler.finish(masker));
        lines
    }

    #[test]
    fn lines_end_with_a_line_feed_a_carriage_return_or_the_output() {
        let masker = Masker::new([]);
        assert_eq!(lines(&masker, &[b"a\nb\r\n\nc\rd"]), ["a", "b", "c", "d"]);
        assert_eq!(lines(&masker, &[b"a", b"b\n", b"", b"c\n"]), ["ab", "c"]);
        assert!(lines(&masker, &[b"", b"\n\n"]).is_empty());
    }

    #[test]
    fn a_line_is_kept_up_to_16_kib_and_says_how_much_is_missing() {
        let masker = Masker::new([]);
        let line = |length: usize| lines(&masker, &[&vec![b'x'; length]]).remove(0);
        assert_eq!(line(16_384), "x".repeat(16_384));
        assert_eq!(line(16_385), format!("{} … [1 bytes more]", "x".repeat(16_384)));
        assert_eq!(line(1_000_000), format!("{} … [983616 bytes more]", "x".repeat(16_384)));
    }

    #[test]
    fn a_secret_that_ends_beyond_what_is_kept_is_hidden() {
        let secret = "s".repeat(65_536);
        let text = [vec![b'x'; LONGEST_LINE - 10], secret.clone().into_bytes()].concat();
        let shown = lines(&Masker::new([secret.as_str()]), &[&text]).remove(0);
        assert!(shown.contains(MASK) && !shown.contains("ss"), "{}", &shown[shown.len() - 40..]);
    }

    #[test]
    fn masks_a_line_of_only_secrets_of_any_length() {
        for secret in ["hunter2-".repeat(300), "x".repeat(65_536), "ä".repeat(1201), "€uro-€".repeat(100)]
        {
            let masker = Masker::new([secret.as_str()]);
            for before in ["", "a", "ab"] {
                let text = format!("{before}{}", secret.repeat(200_000 / secret.len()));
                let shown = lines(&masker, &[text.as_bytes()]).remove(0).replace(MASK, "");
                assert!(shown.starts_with(&format!("{before} … [")), "{shown}");
            }
        }
    }

    #[test]
    fn masks_a_secret_after_many_terminal_control_sequences() {
        for cut in 0..20 {
            let text =
                [b"\x1b[0m".repeat(LOOKED_AT / 4 - 4), vec![b'.'; cut], b"hunter2hunter2".to_vec()].concat();
            let shown = lines(&Masker::new(["hunter2hunter2"]), &[&text]).remove(0);
            assert!(!shown.contains("hu"), "{shown}");
        }
    }

    proptest! {
        #[test]
        fn chunking_changes_neither_lines_nor_masking(cuts in prop::collection::vec(0usize..60, 0..6)) {
            let whole = b"first hunter2secret\nsecond line with hunter2secret and more\nlast".as_slice();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(whole.len())).collect();
            cuts.extend([0, whole.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &whole[pair[0]..pair[1]]).collect();
            let lines = lines(&Masker::new(["hunter2secret"]), &pieces);
            prop_assert_eq!(lines, ["first [secret]", "second line with [secret] and more", "last"]);
        }
    }
}
