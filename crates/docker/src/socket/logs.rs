//! The output of a container, in the form in which the engine sends it.
//!
//! Without a terminal, the engine multiplexes both outputs into one stream, each piece after a header: the
//! number of the output, three zeros and the length of the piece. With a terminal there is one output, sent
//! unchanged. A stream with timestamps begins with a digit in that case, and never with the number of an
//! output.

use std::sync::Arc;

use launchway_domain::deployments::Output;

use super::connection::SocketError;

const HEADER: usize = 8;
/// The stream number of an error message of the engine itself.
const COMPLAINT: u8 = 3;
/// The longest incomplete line that is buffered.
const LONGEST_BEGUN: usize = 128 * 1024;

/// Decodes a stream, and writes whole lines to an [`Output`], so that those of two outputs are not mixed.
pub(super) struct LogDecoder {
    sink: Arc<dyn Output>,
    /// True if pieces have headers; unknown before the first byte.
    has_headers: Option<bool>,
    header: Vec<u8>,
    /// The output of the current piece, and the number of its bytes that are still to come.
    current: usize,
    left: usize,
    /// The beginning of a line, for each output.
    begun: [Vec<u8>; 3],
}

impl LogDecoder {
    pub(super) fn new(sink: Arc<dyn Output>) -> Self {
        let begun = [Vec::new(), Vec::new(), Vec::new()];
        Self { sink, has_headers: None, header: Vec::with_capacity(HEADER), current: 0, left: 0, begun }
    }

    /// Decodes the next bytes of the stream.
    pub(super) async fn push(&mut self, mut bytes: &[u8]) -> Result<(), SocketError> {
        let Some(first) = bytes.first() else { return Ok(()) };
        if !*self.has_headers.get_or_insert(*first <= COMPLAINT) {
            self.take(0, bytes).await;
            return Ok(());
        }
        while !bytes.is_empty() {
            if self.left == 0 {
                let missing = HEADER - self.header.len();
                let (header, rest) = bytes.split_at(missing.min(bytes.len()));
                self.header.extend_from_slice(header);
                bytes = rest;
                if self.header.len() == HEADER {
                    self.read_header()?;
                }
                continue;
            }
            let (piece, rest) = bytes.split_at(self.left.min(bytes.len()));
            self.left -= piece.len();
            bytes = rest;
            self.take(self.current, piece).await;
        }
        Ok(())
    }

    /// Writes the unterminated lines. Fails if the stream ended within a piece.
    pub(super) async fn finish(mut self) -> Result<(), SocketError> {
        for begun in std::mem::take(&mut self.begun) {
            if !begun.is_empty() {
                self.sink.write(&begun).await;
            }
        }
        if self.left == 0 && self.header.is_empty() { Ok(()) } else { Err(SocketError::Unreadable) }
    }

    fn read_header(&mut self) -> Result<(), SocketError> {
        match self.header[..] {
            [output, 0, 0, 0, a, b, c, d] if output < COMPLAINT => {
                self.current = usize::from(output);
                self.left = u32::from_be_bytes([a, b, c, d]) as usize;
                self.header.clear();
                Ok(())
            }
            _ => Err(SocketError::Unreadable),
        }
    }

    async fn take(&mut self, output: usize, piece: &[u8]) {
        let Some(begun) = self.begun.get_mut(output) else { return };
        begun.extend_from_slice(piece);
        let whole = match begun.iter().rposition(|byte| *byte == b'\n') {
            Some(position) => position + 1,
            None if begun.len() > LONGEST_BEGUN => begun.len(),
            None => return,
        };
        let rest = begun.split_off(whole);
        let lines = std::mem::replace(begun, rest);
        self.sink.write(&lines).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;

    use super::*;

    #[derive(Default)]
    struct Recorder(Mutex<Vec<String>>);

    #[async_trait]
    impl Output for Recorder {
        async fn write(&self, piece: &[u8]) {
            self.0.lock().unwrap().push(String::from_utf8_lossy(piece).into_owned());
        }
    }

    fn piece(output: u8, text: &str) -> Vec<u8> {
        let length = u32::try_from(text.len()).unwrap().to_be_bytes();
        [&[output, 0, 0, 0], length.as_slice(), text.as_bytes()].concat()
    }

    /// Decodes a stream that comes in parts of this size.
    async fn decode(stream: &[u8], size: usize) -> (bool, Vec<String>) {
        let recorder = Arc::new(Recorder::default());
        let mut decoder = LogDecoder::new(recorder.clone());
        let mut is_read = true;
        for part in stream.chunks(size) {
            is_read &= decoder.push(part).await.is_ok();
        }
        is_read &= decoder.finish().await.is_ok();
        let lines = std::mem::take(&mut *recorder.0.lock().unwrap());
        (is_read, lines)
    }

    #[tokio::test]
    async fn lines_of_two_outputs_do_not_run_into_each_other() {
        let stream = [piece(1, "2 a"), piece(2, "2 b\n"), piece(1, "c\n"), piece(1, ""), piece(1, "2 end")];
        for size in 1..=stream.concat().len() {
            let (is_read, lines) = decode(&stream.concat(), size).await;
            assert!(is_read);
            assert_eq!(lines, ["2 b\n", "2 ac\n", "2 end"], "{size}");
        }
    }

    #[tokio::test]
    async fn the_output_of_a_terminal_is_taken_as_it_is() {
        let (is_read, lines) = decode(b"2026 a\r\n2026 b", 5).await;
        assert!(is_read);
        assert_eq!(lines, ["2026 a\r\n", "2026 b"]);
    }

    #[tokio::test]
    async fn a_line_without_an_end_is_handed_over_in_parts() {
        let long = "x".repeat(LONGEST_BEGUN);
        let (_, lines) = decode(&[piece(1, &long), piece(1, "y"), piece(1, "z\n")].concat(), 4096).await;
        assert_eq!(lines.concat(), format!("{long}yz\n"));
        assert_eq!(lines.len(), 2);
    }

    #[tokio::test]
    async fn a_stream_that_breaks_off_is_refused() {
        let whole = piece(1, "a\n");
        for cut in 1..whole.len() {
            assert!(!decode(&whole[..cut], 64).await.0, "{cut}");
        }
        assert!(!decode(&piece(3, "the engine failed"), 64).await.0);
        assert!(!decode(&[1, 1, 0, 0, 0, 0, 0, 0], 64).await.0);
        assert!(decode(b"", 64).await.0);
    }
}
