//! Others, to whom messages go: receivers by HTTP, a real mail server, and who vouches for both.

mod authority;
mod mail_server;
mod postbox;
mod receiver;

pub use self::{
    authority::{Authority, Identity},
    mail_server::{MailServer, MailServerOptions, Safety, TakenMail},
    postbox::{Message, Postbox, Reply},
    receiver::{Conversation, Receiver, Request},
};
