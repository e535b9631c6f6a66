//! Shared memory, with futexes as the bell: futex(2).

use super::endpoint::{client, server};
use super::{LARGEST, counted, mailbox};
use crate::transaction::Transport;
use latscope_os::futex::Tokens;

pub(super) static TRANSPORT: Transport = Transport {
    name: "futex",
    title: "shared memory, futex",
    source: "futex(2), memfd_create(2)",
    copies: mailbox::COPIES,
    spins: false,
    inheritance: None,
    max_payload: LARGEST,
    open: counted::endpoint_pair::<Tokens>,
    server: |handle| server(handle, counted::join::<Tokens>),
    client: |handle| client(handle, counted::join::<Tokens>),
};
