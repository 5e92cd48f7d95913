//! Passes file descriptors from one process to another, together with a line of text.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use tokio::{io::Interest, net::UnixStream};

/// Long enough for every line, and short enough to be sent in one piece.
const LINE: usize = 1_024;

/// The largest number of descriptors of a message.
const MOST: usize = 2;

/// Sends a line with descriptors attached, at most two.
pub(super) async fn send(stream: &UnixStream, line: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let sent = stream
        .async_io(Interest::WRITABLE, || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
            Ok(sendmsg(stream.as_fd(), &[IoSlice::new(line)], &mut ancillary, SendFlags::empty())?)
        })
        .await?;
    if sent == line.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Receives a line, and the descriptors attached to it.
pub(super) async fn receive(stream: &UnixStream) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let (mut text, mut descriptors) = (Vec::new(), Vec::new());
    while !text.ends_with(b"\n") && text.len() < LINE {
        let (piece, with_it) = receive_piece(stream).await?;
        if piece.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        text.extend_from_slice(&piece);
        descriptors.extend(with_it);
    }
    Ok((text, descriptors))
}

async fn receive_piece(stream: &UnixStream) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    stream
        .async_io(Interest::READABLE, || {
            let mut text = [0; LINE];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let mut into = [IoSliceMut::new(&mut text)];
            let received = recvmsg(stream.as_fd(), &mut into, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
            let mut descriptors = Vec::new();
            for message in ancillary.drain() {
                if let RecvAncillaryMessage::ScmRights(with_it) = message {
                    descriptors.extend(with_it);
                }
            }
            Ok((text[..received.bytes].to_vec(), descriptors))
        })
        .await
}
