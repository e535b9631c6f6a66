//! Shared memory, with unnamed POSIX semaphores as the bell: sem_overview(7).

use super::party::{client, server};
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
    open: counted::meeting::<Semaphore>,
    server: |handed| server(handed, counted::join::<Semaphore>),
    client: |handed| client(handed, counted::join::<Semaphore>),
};
