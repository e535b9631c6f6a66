//! A thread's conversation with the driver.

use super::abi::*;
use super::commands::BinderCommandBuffer;
use super::driver::BinderDriver;
use super::parcel::{self, Composed, Payload, Pieces};
use super::returns::{self, BinderNode, RawBinderReturn};
use super::{Handle, ONE_WAY};
use rustix::io::{Errno, Result};
use std::sync::Arc;

/// Room for returns: several, the largest being 76 bytes.
const INBOX: usize = 512;

/// Data from another process, in the mapping. The data stays there until it is given back ([`Port::free`], or with a
/// reply); dropped, it fills the mapping until the device is closed.
#[derive(Debug)]
pub struct BinderBuffer {
    driver: u64,
    at: usize,
    bytes: usize,
    offsets_at: usize,
    offsets: usize,
}

/// A transaction or a reply that arrived.
#[derive(Debug)]
pub struct Incoming {
    /// The cookie of the node that is meant; 0 in a reply.
    pub cookie: u64,
    /// Code of the requested operation.
    pub code: u32,
    /// Flags of the transaction: [`ONE_WAY`].
    pub flags: u32,
    /// The sender's process; 0 for a one-way transaction and a reply.
    pub sender_pid: i32,
    /// The sender's effective user.
    pub sender_euid: u32,
    /// Data of the transaction or reply.
    pub buffer: BinderBuffer,
}

impl Incoming {
    /// Returns true if the sender waits for no reply.
    pub fn one_way(&self) -> bool {
        self.flags & ONE_WAY != 0
    }
}

/// Return from the driver.
#[derive(Debug)]
pub enum Return {
    /// A call has come.
    Transaction(Incoming),
    /// The answer to this thread's call.
    Reply(Incoming),
    /// The last transaction or reply was taken.
    Complete,
    /// The receiver of the last transaction no longer exists.
    DeadReply,
    /// The last transaction failed; [`BinderDriver::extended_error`] gives the reason.
    FailedReply,
    /// The last transaction's receiver is frozen.
    FrozenReply,
    /// No process has a strong reference to the node any more.
    Released(BinderNode),
    /// The process behind a handle died, for which this cookie was left.
    DeadBinder(u64),
    /// The driver reports an error of the protocol.
    Error(i32),
    /// A transaction outside of the mapping: not from a binder driver.
    Outside,
    /// The caller has nothing to do.
    Nothing,
}

/// Commands to the driver and returns from it, for one thread at a time.
#[derive(Debug)]
pub struct Port {
    driver: Arc<BinderDriver>,
    commands: BinderCommandBuffer,
    inbox: Box<[u8; INBOX]>,
    at: usize,
    end: usize,
    exchanges: u64,
}

impl Port {
    /// A port to an open device.
    pub fn new(driver: Arc<BinderDriver>) -> Port {
        let (commands, inbox) = (BinderCommandBuffer::default(), Box::new([0; INBOX]));
        Port { driver, commands, inbox, at: 0, end: 0, exchanges: 0 }
    }

    /// Returns the device of this port.
    pub fn driver(&self) -> &Arc<BinderDriver> {
        &self.driver
    }

    /// System calls made so far for commands and returns.
    pub fn exchanges(&self) -> u64 {
        self.exchanges
    }

    /// Queues the command by which this thread begins to serve requests to its process.
    pub fn enter_looper(&mut self) {
        self.commands.bare(BC_ENTER_LOOPER);
    }

    /// Queues the command by which this thread stops serving requests.
    pub fn exit_looper(&mut self) {
        self.commands.bare(BC_EXIT_LOOPER);
    }

    /// Queues the command that gives a received buffer back.
    ///
    /// # Panics
    /// The buffer is of another opening.
    pub fn free(&mut self, buffer: BinderBuffer) {
        assert_eq!(buffer.driver, self.driver.id());
        self.commands.push_word(BC_FREE_BUFFER, self.driver.address_at(buffer.at));
    }

    /// Queues the commands that take a strong (and a weak) reference to a handle that is in a buffer; the reference
    /// ends with the buffer otherwise.
    pub fn acquire(&mut self, handle: Handle) {
        self.commands.push_refcount(BC_INCREFS, handle);
        self.commands.push_refcount(BC_ACQUIRE, handle);
    }

    /// Queues the command that gives back a reference from [`acquire`](Self::acquire).
    pub fn release_handle(&mut self, handle: Handle) {
        self.commands.push_refcount(BC_RELEASE, handle);
        self.commands.push_refcount(BC_DECREFS, handle);
    }

    /// Queues asking for [`Return::DeadBinder`] with `cookie`.
    pub fn watch_death(&mut self, handle: Handle, cookie: u64) {
        self.commands.death(BC_REQUEST_DEATH_NOTIFICATION, handle, cookie);
    }

    /// Queues asking no longer.
    pub fn unwatch(&mut self, handle: Handle, cookie: u64) {
        self.commands.death(BC_CLEAR_DEATH_NOTIFICATION, handle, cookie);
    }

    /// Queues: [`Return::DeadBinder`] with this cookie was seen.
    pub fn confirm_death(&mut self, cookie: u64) {
        self.commands.push_word(BC_DEAD_BINDER_DONE, cookie);
    }

    /// Returns true if any command is queued.
    pub fn is_queued(&self) -> bool {
        !self.commands.is_empty()
    }

    /// Writes the queued commands.
    ///
    /// # Errors
    /// The driver does not understand it.
    pub fn flush(&mut self) -> Result<()> {
        // SAFETY: what is queued holds no addresses but of buffers given back.
        unsafe { self.exchange(false) }
    }

    /// Writes the queued commands and waits for returns.
    ///
    /// # Errors
    /// The driver does not understand it; EAGAIN if the device is not to block.
    #[inline]
    pub fn read_returns(&mut self) -> Result<()> {
        // SAFETY: as in `flush`.
        unsafe { self.exchange(true) }
    }

    /// Writes the queued commands and a transaction, and waits for returns: one system call.
    ///
    /// # Errors
    /// The errors of [`read_returns`](Self::read_returns).
    #[inline]
    pub fn call_handle(&mut self, target: Handle, code: u32, flags: u32, payload: Payload) -> Result<()> {
        let target = handle_word(target.0);
        let head = Transaction { target, code, flags, ..Transaction::default() };
        self.send_payload((BC_TRANSACTION, BC_TRANSACTION_SG), head, payload, None)
    }

    /// Writes the queued commands and the reply to a request, gives the request back and waits for returns: one system
    /// call.
    ///
    /// # Errors
    /// The errors of [`read_returns`](Self::read_returns).
    ///
    /// # Panics
    /// The buffer is of another opening.
    #[inline]
    pub fn reply_to(&mut self, request: BinderBuffer, payload: Payload) -> Result<()> {
        self.send_payload((BC_REPLY, BC_REPLY_SG), Transaction::default(), payload, Some(request))
    }

    /// Replies with the bytes of the request, from where they are.
    ///
    /// # Errors
    /// The errors of [`read_returns`](Self::read_returns).
    ///
    /// # Panics
    /// The buffer is of another opening.
    #[inline]
    pub fn echo(&mut self, request: BinderBuffer) -> Result<()> {
        let data = Transaction {
            data_size: request.bytes as u64,
            offsets_size: request.offsets as u64,
            buffer: self.driver.address_at(request.at),
            offsets: self.driver.address_at(request.offsets_at),
            ..Transaction::default()
        };
        // The driver has put the addresses of the pieces right for this
        // process: they can be sent on as they are.
        let pieces = self.pieces(&request);
        let room = pieces.map(|(_, child)| Pieces::room(child.length as usize));
        self.commands.transaction((BC_REPLY, BC_REPLY_SG), &data, room);
        self.free(request);
        // SAFETY: the addresses are of the request, which is given back only
        // behind the reply and not borrowed.
        unsafe { self.exchange(true) }
    }

    #[inline]
    fn send_payload(
        &mut self,
        codes: (u32, u32),
        head: Transaction,
        payload: Payload,
        request: Option<BinderBuffer>,
    ) -> Result<()> {
        match payload {
            Payload::Flat(data) => {
                let data = Transaction { data_size: data.len() as u64, buffer: address_of(data), ..head };
                // SAFETY: the data is borrowed until the call is over.
                unsafe { self.send_data(codes, &data, None, request) }
            }
            Payload::Composed(Composed { data, offsets }) => {
                let data = Transaction {
                    data_size: data.len() as u64,
                    offsets_size: size_of_val(offsets.as_slice()) as u64,
                    buffer: address_of(data),
                    offsets: address_of(offsets),
                    ..head
                };
                // SAFETY: as above; objects are nodes and handles, without addresses.
                unsafe { self.send_data(codes, &data, None, request) }
            }
            Payload::Vector(bytes) => {
                let header = Pieces::header(bytes);
                let pieces = Pieces::of(&header, bytes);
                let data = Transaction {
                    data_size: size_of_val(&pieces.data) as u64,
                    offsets_size: size_of_val(&pieces.offsets) as u64,
                    buffer: address_of(pieces.data.as_bytes()),
                    offsets: address_of(&pieces.offsets),
                    ..head
                };
                // SAFETY: the bytes are borrowed, and header, objects and
                // offsets are in this frame until the call is over.
                unsafe { self.send_data(codes, &data, Some(Pieces::room(bytes.len())), request) }
            }
        }
    }

    /// # Safety
    /// What `data` has addresses of is borrowed until this returns.
    #[inline]
    unsafe fn send_data(
        &mut self,
        codes: (u32, u32),
        data: &Transaction,
        room: Option<u64>,
        request: Option<BinderBuffer>,
    ) -> Result<()> {
        self.commands.transaction(codes, data, room);
        if let Some(request) = request {
            self.free(request);
        }
        // SAFETY: as the caller vouches.
        unsafe { self.exchange(true) }
    }

    /// Writes all commands and, if `read`, waits for returns, unless some returns were not read yet. A signal
    /// interrupts neither, and consumed commands are not written again.
    ///
    /// # Safety
    /// The addresses in the commands are of live memory, and no buffer given
    /// back is borrowed.
    #[inline]
    unsafe fn exchange(&mut self, read: bool) -> Result<()> {
        // SAFETY: as the caller vouches.
        let outcome = unsafe { self.write_and_read(read && self.at == self.end) };
        // Nothing is kept that has addresses of the caller's.
        self.commands.clear();
        outcome
    }

    /// # Safety
    /// The requirements of `exchange` apply.
    #[inline]
    unsafe fn write_and_read(&mut self, read: bool) -> Result<()> {
        let mut io = WriteRead {
            write_size: self.commands.as_bytes().len() as u64,
            write_buffer: address_of(self.commands.as_bytes()),
            ..WriteRead::default()
        };
        if read {
            (self.at, self.end) = (0, 0);
            io.read_size = INBOX as u64;
            io.read_buffer = self.inbox.as_mut_ptr() as u64;
        }
        loop {
            let before = io.write_consumed;
            self.exchanges += 1;
            // SAFETY: commands and inbox are this port's, of the sizes stated;
            // for the addresses in the commands the caller vouches.
            let outcome = unsafe { self.driver.write_read(&mut io) };
            if read {
                self.end = (io.read_consumed as usize).min(INBOX);
            }
            match outcome {
                Ok(()) | Err(Errno::INTR) if io.write_consumed >= io.write_size => {
                    if !read || self.end > 0 {
                        return Ok(());
                    }
                }
                // A transaction that fails stops the writing, to report it: on
                // with the rest, which is not to be waited behind.
                Ok(()) if io.write_consumed > before || io.read_size > 0 => {
                    if self.end > 0 {
                        io.read_size = 0;
                    }
                }
                Ok(()) => return Err(Errno::PROTO),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the next return of the driver; `None` after the last.
    ///
    /// That a reference to a node of this process was taken is confirmed with
    /// the next commands.
    #[allow(clippy::should_implement_trait)] // it is not iterated over
    #[inline]
    pub fn next(&mut self) -> Option<Return> {
        let mut stream = &self.inbox[self.at..self.end];
        let raw = returns::take_return(&mut stream);
        self.at = if raw.is_some() { self.end - stream.len() } else { self.end };
        Some(match raw? {
            RawBinderReturn::Transaction(data) => {
                self.incoming(&data).map_or(Return::Outside, Return::Transaction)
            }
            RawBinderReturn::Reply(data) => self.incoming(&data).map_or(Return::Outside, Return::Reply),
            RawBinderReturn::Complete => Return::Complete,
            RawBinderReturn::DeadReply => Return::DeadReply,
            RawBinderReturn::FailedReply => Return::FailedReply,
            RawBinderReturn::FrozenReply => Return::FrozenReply,
            RawBinderReturn::IncRefs(node) => {
                self.commands.confirm(BC_INCREFS_DONE, node);
                Return::Nothing
            }
            RawBinderReturn::Acquire(node) => {
                self.commands.confirm(BC_ACQUIRE_DONE, node);
                Return::Nothing
            }
            RawBinderReturn::Release(node) => Return::Released(node),
            RawBinderReturn::DeadBinder(cookie) => Return::DeadBinder(cookie),
            RawBinderReturn::Error(error) => Return::Error(error),
            RawBinderReturn::DecRefs(_) | RawBinderReturn::DeathCleared(_) | RawBinderReturn::Nothing(_) => {
                Return::Nothing
            }
        })
    }

    /// A transaction whose buffer is in the mapping, as all are.
    #[inline]
    fn incoming(&self, data: &Transaction) -> Option<Incoming> {
        let at = self.driver.mapping_offset(data.buffer, data.data_size)?;
        let offsets_at = match data.offsets_size {
            0 => at,
            bytes => self.driver.mapping_offset(data.offsets, bytes)?,
        };
        let buffer = BinderBuffer {
            driver: self.driver.id(),
            at,
            bytes: data.data_size as usize,
            offsets_at,
            offsets: data.offsets_size as usize,
        };
        Some(Incoming {
            cookie: data.cookie,
            code: data.code,
            flags: data.flags,
            sender_pid: data.sender_pid,
            sender_euid: data.sender_euid,
            buffer,
        })
    }

    /// The bytes of a buffer.
    ///
    /// # Panics
    /// The buffer is of another opening.
    #[inline]
    pub fn data<'a>(&'a self, buffer: &'a BinderBuffer) -> &'a [u8] {
        assert_eq!(buffer.driver, self.driver.id());
        // SAFETY: a buffer that was received, and not given back as it is borrowed.
        unsafe { self.driver.slice(buffer.at, buffer.bytes) }
    }

    /// Returns the bytes of a [`Payload::Vector`] in a buffer, if the buffer holds one.
    ///
    /// # Panics
    /// The buffer is of another opening.
    #[inline]
    pub fn vector<'a>(&'a self, buffer: &'a BinderBuffer) -> Option<&'a [u8]> {
        let (parent, child) = self.pieces(buffer)?;
        let at = self.driver.mapping_offset(parent.buffer, parent.length)?;
        // SAFETY: the driver put the pieces of a transaction into its buffer,
        // behind data and offsets, and wrote where: they were not the sender's
        // to choose.
        let header = VectorHeader::from_bytes(unsafe { self.driver.slice(at, size_of::<VectorHeader>()) })?;
        if header.buffer != child.buffer || u64::from(header.size) != child.length {
            return None;
        }
        let at = self.driver.mapping_offset(child.buffer, child.length)?;
        // SAFETY: as above.
        Some(unsafe { self.driver.slice(at, child.length as usize) })
    }

    /// The handles in a buffer; they last as long as it, unless
    /// [acquired](Self::acquire).
    ///
    /// # Panics
    /// The buffer is of another opening.
    pub fn handles(&self, buffer: &BinderBuffer) -> Vec<Handle> {
        parcel::handles(self.data(buffer), &self.offsets(buffer)).collect()
    }

    fn pieces(&self, buffer: &BinderBuffer) -> Option<(BufferObject, BufferObject)> {
        let list = self.offset_bytes(buffer).as_chunks::<8>().0;
        let [first, second] = list else { return None };
        let offsets = [u64::from_ne_bytes(*first), u64::from_ne_bytes(*second)];
        parcel::vector_objects(self.data(buffer), &offsets)
    }

    fn offsets(&self, buffer: &BinderBuffer) -> Vec<u64> {
        let list = self.offset_bytes(buffer).as_chunks::<8>().0;
        list.iter().map(|bytes| u64::from_ne_bytes(*bytes)).collect()
    }

    fn offset_bytes<'a>(&'a self, buffer: &'a BinderBuffer) -> &'a [u8] {
        assert_eq!(buffer.driver, self.driver.id());
        // SAFETY: as in `data`.
        unsafe { self.driver.slice(buffer.offsets_at, buffer.offsets) }
    }
}

/// Returns the address of `values` as the driver takes it.
fn address_of<T>(values: &[T]) -> u64 {
    values.as_ptr() as u64
}
