//! Shared memory, with unnamed POSIX semaphores as the bell: sem_overview(7).

use super::endpoint::{client, server};
use super::{LARGEST, counted, mailbox};
use crate::transaction::Transport;
use latscope_os::semaphore::Semaphore;

pub(super) static TRANSPORT: Transport = Transport {
    name: "posix-semaphore",
    title: "shared memory, POSIX semaphore",
    source: "sem_overview(7), memfd_create(2)",
    copies: mailbox::COPIES,
    spins: false,
    inheritance: None,
    max_payload: LARGEST,
    open: counted::endpoint_pair::<Semaphore>,
    server: |handle| server(handle, counted::join::<Semaphore>),
    client: |handle| client(handle, counted::join::<Semaphore>),
};
