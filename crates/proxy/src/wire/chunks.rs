//! Chunked bodies, parsed as far as needed to find their end.

/// The position of the next byte in the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunks {
    /// In a chunk's size.
    Size { size: u64, digits: u8 },
    /// After the size: extensions are ignored.
    Extension { size: u64, bytes: u16 },
    /// At the end of the size's line.
    SizeEnd { size: u64 },
    /// In a chunk.
    Data { left: u64 },
    /// After a chunk.
    DataEnd,
    /// At the end of that line.
    DataLineEnd,
    /// At the beginning of a line after the last chunk.
    Trailer,
    /// In that line.
    TrailerLine { bytes: u16 },
    /// At the end of that line.
    TrailerEnd,
    /// At the end of the last line.
    LastEnd,
    /// After the body.
    Over,
}

/// The largest size of an extension, and of a trailer.
const MOST_BYTES: u16 = 4_096;

impl Chunks {
    pub(super) const BEGIN: Self = Self::Size { size: 0, digits: 0 };

    /// Consumes bytes up to the end of the body, and returns their number.
    ///
    /// # Errors
    ///
    /// Returns why the bytes are not a valid chunk.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<usize, &'static str> {
        let mut used = 0;
        while used < bytes.len() && *self != Self::Over {
            if let Self::Data { left } = *self {
                let step = left.min((bytes.len() - used) as u64);
                *self = if step == left { Self::DataEnd } else { Self::Data { left: left - step } };
                used += usize::try_from(step).unwrap_or_default();
            } else {
                *self = self.after(bytes[used])?;
                used += 1;
            }
        }
        Ok(used)
    }

    fn after(self, byte: u8) -> Result<Self, &'static str> {
        Ok(match (self, byte) {
            (Self::Size { size, digits }, _) if byte.is_ascii_hexdigit() && digits < 15 => {
                Self::Size { size: size * 16 + digit(byte), digits: digits + 1 }
            }
            (Self::Size { size, digits: 1.. }, b'\r') => Self::SizeEnd { size },
            (Self::Size { size, digits: 1.. }, b';') => Self::Extension { size, bytes: 0 },
            (Self::Extension { size, .. }, b'\r') => Self::SizeEnd { size },
            (Self::Extension { size, bytes: bytes @ ..MOST_BYTES }, b'\t' | b' '..=b'~' | 0x80..) => {
                Self::Extension { size, bytes: bytes + 1 }
            }
            (Self::SizeEnd { size: 0 }, b'\n') => Self::Trailer,
            (Self::SizeEnd { size }, b'\n') => Self::Data { left: size },
            (Self::DataEnd, b'\r') => Self::DataLineEnd,
            (Self::DataLineEnd, b'\n') => Self::BEGIN,
            (Self::Trailer, b'\r') => Self::LastEnd,
            (Self::LastEnd, b'\n') => Self::Over,
            (Self::Trailer, b'!'..=b'~') => Self::TrailerLine { bytes: 1 },
            (Self::TrailerLine { .. }, b'\r') => Self::TrailerEnd,
            (Self::TrailerLine { bytes: bytes @ ..MOST_BYTES }, b'\t' | b' '..=b'~' | 0x80..) => {
                Self::TrailerLine { bytes: bytes + 1 }
            }
            (Self::TrailerEnd, b'\n') => Self::Trailer,
            _ => return Err("a chunk that is none"),
        })
    }
}

fn digit(byte: u8) -> u64 {
    char::from(byte).to_digit(16).map_or(0, u64::from)
}
