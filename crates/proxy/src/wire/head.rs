//! Validation of a request's head.

/// The framing of the body after a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// A body of this length.
    Length(u64),
    /// A chunked body.
    Chunks,
    /// Possibly another protocol.
    Upgrade,
}

/// Returns the end of the head, if it is complete. `seen` bytes have been checked before.
///
/// # Errors
///
/// Returns which byte is not allowed.
pub(super) fn end(bytes: &[u8], seen: usize) -> Result<Option<usize>, &'static str> {
    // The end may have begun in what has been seen.
    let start = seen.saturating_sub(3);
    for (index, &byte) in bytes.iter().enumerate().skip(start) {
        match byte {
            b'\n' if index == 0 || bytes[index - 1] != b'\r' => {
                return Err("a line ends without a carriage return");
            }
            b'\n' if index >= 3 && bytes[index - 2] == b'\n' => return Ok(Some(index + 1)),
            b'\n' | b'\t' => {}
            b'\r' if bytes.get(index + 1).is_some_and(|&next| next != b'\n') => {
                return Err("a carriage return ends no line");
            }
            b'\r' => {}
            0..0x20 | 0x7F => return Err("a control character"),
            _ => {}
        }
    }
    Ok(None)
}

/// Returns the framing that a complete head declares.
///
/// # Errors
///
/// Returns what two servers may parse differently.
pub(super) fn framing(head: &[u8]) -> Result<Framing, &'static str> {
    let mut lines = head.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let is_http_11 = check_request_line(lines.next().unwrap_or_default())?;
    let (mut length, mut is_chunked, mut is_upgrade) = (None, false, false);
    for line in lines.filter(|line| !line.is_empty()) {
        let (name, value) = header(line)?;
        match name.len() {
            7 if name.eq_ignore_ascii_case(b"upgrade") => is_upgrade = is_http_11,
            14 | 17 if is_look_alike(name) => return Err("a header that looks like a length"),
            14 if name.eq_ignore_ascii_case(b"content-length") => match length {
                None => length = Some(number(value)?),
                Some(_) => return Err("several lengths"),
            },
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                match is_http_11 && !is_chunked && value.eq_ignore_ascii_case(b"chunked") {
                    true => is_chunked = true,
                    false => return Err("a transfer encoding that is not just `chunked`"),
                }
            }
            _ => {}
        }
    }
    match (length, is_chunked) {
        (Some(_), true) => Err("a length and chunks"),
        (None, true) => Ok(Framing::Chunks),
        (None | Some(0), false) if is_upgrade => Ok(Framing::Upgrade),
        (length, false) => Ok(Framing::Length(length.unwrap_or_default())),
    }
}

/// Checks the request line. Returns true for HTTP/1.1, false for 1.0.
fn check_request_line(line: &[u8]) -> Result<bool, &'static str> {
    let mut words = line.split(|&byte| byte == b' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    match (method, target, version, words.next()) {
        (Some(b"CONNECT"), ..) => Err("`CONNECT`"),
        (Some([_, ..]), Some([_, ..]), Some(b"HTTP/1.1"), None) => Ok(true),
        (Some([_, ..]), Some([_, ..]), Some(b"HTTP/1.0"), None) => Ok(false),
        _ => Err("the first line is no request"),
    }
}

fn header(line: &[u8]) -> Result<(&[u8], &[u8]), &'static str> {
    let colon = line.iter().position(|&byte| byte == b':').ok_or("a header without a colon")?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    match !name.is_empty() && name.iter().all(|&byte| is_token(byte)) {
        true => Ok((name, value.trim_ascii())),
        false => Err("a header with an odd name"),
    }
}

/// Some applications treat an underscore as a dash.
fn is_look_alike(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"content_length") || name.eq_ignore_ascii_case(b"transfer_encoding")
}

fn number(value: &[u8]) -> Result<u64, &'static str> {
    if value.is_empty() || value.len() > 18 || !value.iter().all(u8::is_ascii_digit) {
        return Err("a length that is no number");
    }
    Ok(value.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
