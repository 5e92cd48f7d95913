//! The packets of the git protocol: four hexadecimal digits of length, and the content.

/// The longest content of a packet.
const LONGEST: usize = 65_516;
/// The longest text of one packet of a side band.
const LONGEST_BAND: usize = 65_515;

/// A packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PktLine<'a> {
    /// A packet with content.
    Data(&'a [u8]),
    /// The end of a section, or another packet without content.
    Flush,
}

/// Splits `bytes` into packets, each with the number of bytes that it takes. Ends at the first byte that is no packet.
pub fn pkt_lines(bytes: &[u8]) -> impl Iterator<Item = (PktLine<'_>, usize)> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let digits = rest.get(..4)?;
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let length = usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        let (line, taken) = match length {
            0..=2 => (PktLine::Flush, 4),
            3 => return None,
            length => (PktLine::Data(rest.get(4..length)?), length),
        };
        rest = rest.get(taken..)?;
        Some((line, taken))
    })
}

/// Returns a packet with `content`, which is cut at the longest that fits.
#[must_use]
pub fn packet(content: &[u8]) -> Vec<u8> {
    let content = content.get(..LONGEST).unwrap_or(content);
    let mut bytes = format!("{:04x}", content.len() + 4).into_bytes();
    bytes.extend_from_slice(content);
    bytes
}

/// Returns packets with `content` on a side band: 1 for data, 2 for text that a client prints.
#[must_use]
pub fn sideband(band: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for piece in content.chunks(LONGEST_BAND) {
        let mut packed = vec![band];
        packed.extend_from_slice(piece);
        bytes.extend(packet(&packed));
    }
    bytes
}

/// Returns packets with a line that a client prints.
#[must_use]
pub fn progress(line: &str) -> Vec<u8> {
    sideband(2, format!("{line}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(bytes: &[u8]) -> Vec<PktLine<'_>> {
        pkt_lines(bytes).map(|(line, _)| line).collect()
    }

    #[test]
    fn packets_are_read_up_to_the_first_byte_that_is_none() {
        assert_eq!(read(b"0006a\n0000PACK"), [PktLine::Data(b"a\n"), PktLine::Flush]);
        for broken in [&b""[..], b"000", b"0003", b"0009abc", b"zzzz", b"+006a\n", b"00 6"] {
            assert_eq!(read(broken), [], "{broken:?}");
        }
    }

    #[test]
    fn long_content_takes_several_packets_of_a_band() {
        let long = vec![b'x'; LONGEST_BAND + 1];
        let packed = sideband(2, &long);
        let lines = read(&packed);
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1], PktLine::Data(b"\x02x"));
    }

    proptest! {
        #[test]
        fn what_is_packed_is_read_again(content in proptest::collection::vec(any::<u8>(), 1..200)) {
            let packed = packet(&content);
            prop_assert_eq!(read(&packed), [PktLine::Data(&content)]);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let taken: usize = pkt_lines(&bytes).map(|(_, taken)| taken).sum();
            prop_assert!(taken <= bytes.len());
        }
    }
}
