//! System V message queues and semaphores (sysvipc(7)) by their system calls.
//! They have no descriptors: they stay until they are removed.

use crate::syscall::syscall;
use rustix::io::{Result, retry_on_intr};

/// Choice whether a call may sleep.
pub use crate::message_queue::Blocking;

/// The kinds of objects that stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemVObjectKind {
    /// A message queue: msgget(2).
    Queue,
    /// A set of semaphores: semget(2).
    Semaphores,
}

/// Removes an object; calls that wait in it get `EIDRM`. msgctl(2), semctl(2) IPC_RMID.
///
/// # Errors
/// `EINVAL` or `EIDRM`: there is no object of this number. `EPERM`: it belongs to another user.
pub fn remove(kind: SystemVObjectKind, id: i32) -> Result<()> {
    let remove = libc::IPC_RMID as usize;
    let (call, arguments) = match kind {
        SystemVObjectKind::Queue => (libc::SYS_msgctl, [id as usize, remove, 0, 0, 0, 0]),
        SystemVObjectKind::Semaphores => (libc::SYS_semctl, [id as usize, 0, remove, 0, 0, 0]),
    };
    // SAFETY: IPC_RMID reads and writes no memory of ours.
    unsafe { syscall(call, arguments) }.map(drop)
}

const PRIVATE: usize = libc::IPC_PRIVATE as usize;

/// Flags of a new object: permissions for the owner only.
const MODE: usize = libc::IPC_CREAT as usize | 0o600;

fn flags(blocking: Blocking) -> usize {
    match blocking {
        Blocking::Yes => 0,
        Blocking::No => libc::IPC_NOWAIT as usize,
    }
}

/// Makes a message queue and returns its number: msgget(2).
///
/// # Errors
/// `ENOSPC`: as many as /proc/sys/kernel/msgmni allows. `ENOSYS`: a kernel without them.
pub fn create_queue() -> Result<i32> {
    // SAFETY: the call has no pointers.
    unsafe { syscall(libc::SYS_msgget, [PRIVATE, MODE, 0, 0, 0, 0]) }.map(|id| id as i32)
}

/// A message as msgsnd(2) and msgrcv(2) have it: its type, and the bytes behind it.
#[derive(Debug)]
pub struct SystemVMessage(Box<[libc::c_long]>);

impl SystemVMessage {
    /// Room for messages of up to `capacity` bytes.
    pub fn with_capacity(capacity: usize) -> SystemVMessage {
        let mut words = vec![0; 1 + capacity.div_ceil(size_of::<libc::c_long>())].into_boxed_slice();
        // The type; it must be positive.
        words[0] = 1;
        SystemVMessage(words)
    }

    /// Bytes there is room for.
    pub fn capacity(&self) -> usize {
        (self.0.len() - 1) * size_of::<libc::c_long>()
    }

    /// The bytes behind the type.
    #[inline]
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let (capacity, text) = (self.capacity(), &mut self.0[1..]);
        // SAFETY: `text` has `capacity` initialised bytes, any bytes are a number, and it is borrowed as long as the
        // slice.
        unsafe { std::slice::from_raw_parts_mut(text.as_mut_ptr().cast(), capacity) }
    }

    /// Puts the first `length` bytes into a queue: msgsnd(2).
    ///
    /// # Errors
    /// `EINVAL`: longer than /proc/sys/kernel/msgmax, or no such queue. `EIDRM`: removed.
    /// `EINTR`. `EAGAIN`: full.
    ///
    /// # Panics
    /// There is no room for that many bytes.
    #[inline]
    pub fn send_to_queue(&self, queue: i32, length: usize, blocking: Blocking) -> Result<()> {
        assert!(length <= self.capacity());
        let arguments = [queue as usize, self.0.as_ptr() as usize, length, flags(blocking), 0, 0];
        // SAFETY: the kernel reads the type and `length` bytes behind it, which are there.
        unsafe { syscall(libc::SYS_msgsnd, arguments) }.map(drop)
    }

    /// Takes the first message of a queue and returns its length: msgrcv(2).
    ///
    /// # Errors
    /// `E2BIG`: it is longer than there is room for. `EIDRM`: removed. `EINTR`. `ENOMSG`: empty.
    #[inline]
    pub fn receive_from_queue(&mut self, queue: i32, blocking: Blocking) -> Result<usize> {
        let (capacity, start) = (self.capacity(), self.0.as_mut_ptr() as usize);
        // SAFETY: the kernel writes the type and at most `capacity` bytes behind it.
        unsafe { syscall(libc::SYS_msgrcv, [queue as usize, start, capacity, 0, flags(blocking), 0]) }
    }
}

/// Makes `count` semaphores that count from 0 and returns the number of the set: semget(2).
///
/// # Errors
/// `ENOSPC`: as many as /proc/sys/kernel/sem allows. `ENOSYS`: a kernel without them.
pub fn create_semaphores(count: usize) -> Result<i32> {
    // SAFETY: the call has no pointers.
    unsafe { syscall(libc::SYS_semget, [PRIVATE, count, MODE, 0, 0, 0]) }.map(|id| id as i32)
}

/// Adds `change` to a semaphore of a set; below zero it cannot get and sleeps instead: semop(2).
///
/// # Errors
/// `EIDRM` or `EINVAL`: removed. `EINTR`. `ERANGE`: no room for more. `EFBIG`: no such semaphore in the set.
#[inline]
pub fn change(set: i32, semaphore: u16, change: i16) -> Result<()> {
    let operation = libc::sembuf { sem_num: semaphore, sem_op: change, sem_flg: 0 };
    let arguments = [set as usize, &raw const operation as usize, 1, 0, 0, 0];
    // SAFETY: one operation, valid for the call, which only reads it.
    retry_on_intr(|| unsafe { syscall(libc::SYS_semop, arguments) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn messages_keep_their_order_and_bounds_until_the_queue_is_removed() {
        let queue = create_queue().unwrap();
        let mut message = SystemVMessage::with_capacity(13);
        assert_eq!(message.capacity(), 16);
        message.payload_mut()[..5].copy_from_slice(b"first");
        message.send_to_queue(queue, 5, Blocking::Yes).unwrap();
        message.send_to_queue(queue, 0, Blocking::Yes).unwrap();
        message.payload_mut().fill(0);
        assert_eq!(message.receive_from_queue(queue, Blocking::Yes), Ok(5));
        assert_eq!(&message.payload_mut()[..5], b"first");
        assert_eq!(message.receive_from_queue(queue, Blocking::No), Ok(0));
        assert_eq!(message.receive_from_queue(queue, Blocking::No), Err(Errno::NOMSG));
        remove(SystemVObjectKind::Queue, queue).unwrap();
        assert!(remove(SystemVObjectKind::Queue, queue).is_err());
        assert!(matches!(message.send_to_queue(queue, 5, Blocking::Yes), Err(Errno::INVAL | Errno::IDRM)));
    }

    #[test]
    fn semaphores_count_and_their_end_ends_the_waiting() {
        let set = create_semaphores(2).unwrap();
        change(set, 1, 2).unwrap();
        change(set, 1, -2).unwrap();
        assert_eq!(change(set, 2, 1), Err(Errno::FBIG));
        let waiting = std::thread::spawn(move || change(set, 0, -1));
        remove(SystemVObjectKind::Semaphores, set).unwrap();
        assert!(matches!(waiting.join().unwrap(), Err(Errno::IDRM | Errno::INVAL)));
    }
}
