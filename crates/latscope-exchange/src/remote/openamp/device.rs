//! The device: serves one driver after the other, as OpenAMP's echo does one.

use super::super::echo;
use super::super::kicks::Kicks;
use super::socket::{self, OpenampKickSocket};
use super::{DEMO, LAYOUT, files};
use anyhow::Result;
use latscope_os::window::MemoryWindow as Memory;
use latscope_os::window::ends::WindowEcho;
use latscope_process::made_name::MadeName;
use latscope_rpmsg::echo::{RpmsgService, RpmsgServiceCounts};
use latscope_rpmsg::header::NAME_SERVICE;
use latscope_rpmsg::name_service::Announcement;
use latscope_rpmsg::{Fault, Faults, RpmsgLink, RpmsgRemote};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

const MILLISECOND: u64 = 1_000_000;

/// Totals over all drivers that were served.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenampServiceTotals {
    /// Number of drivers that began.
    pub drivers: u64,
    /// Totals of the messages.
    pub counts: RpmsgServiceCounts,
    /// Counts of the drivers' faults.
    pub faults: Faults,
}

impl OpenampServiceTotals {
    /// Returns these totals with those of another driver.
    fn add_driver(mut self, counts: RpmsgServiceCounts, faults: Faults) -> OpenampServiceTotals {
        self.drivers += 1;
        self.counts += counts;
        self.faults += faults;
        self
    }
}

/// The memory and the place of the socket.
#[derive(Debug)]
pub struct OpenampDevice {
    memory: Memory,
    socket: PathBuf,
    spin_ns: u64,
    served: Mutex<OpenampServiceTotals>,
    /// Names to be removed in the end: of the memory, unless it was there before, and of the socket while there is one.
    names: Mutex<[Option<MadeName>; 2]>,
}

impl OpenampDevice {
    /// Makes the memory ready. The device spins for `spin_ns` before it sleeps.
    ///
    /// # Errors
    /// The memory belongs to another user, or a process is at the socket.
    pub fn new(memory: &Path, socket: &Path, spin_ns: u64) -> Result<OpenampDevice> {
        // That process uses the memory.
        socket::unused(socket)?;
        let (memory, name) = files::create_or_reuse(memory, &LAYOUT)?;
        let (names, served) = (Mutex::new([name, None]), Mutex::default());
        Ok(OpenampDevice { memory, socket: socket.to_owned(), spin_ns, served, names })
    }

    /// Returns the totals, of a driver that is served now until its last silence.
    pub fn served(&self) -> OpenampServiceTotals {
        *self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the names, also while a driver is served: as dropping does.
    pub fn remove(&self) {
        *self.names.lock().unwrap_or_else(PoisonError::into_inner) = [None, None];
    }

    /// Waits for a driver and serves it until it ends.
    ///
    /// # Errors
    /// The socket is not available. A driver's behaviour causes no error.
    pub fn serve_one(&self) -> Result<()> {
        // Who can connect finds a table that is ready: there is no other sign.
        LAYOUT.reset(&self.memory)?;
        let (listener, name) = socket::listen(&self.socket)?;
        self.name_socket(Some(name));
        let (stream, _) = listener.accept()?;
        // A second driver is refused: there is one pair of rings.
        drop(listener);
        match self.serve_driver(Kicks::new(OpenampKickSocket::new(stream)?, self.spin_ns)) {
            Err(error) if is_end(&error) => {}
            other => other?,
        }
        self.name_socket(None);
        Ok(())
    }

    /// Sets the name of the socket. The one before is removed.
    fn name_socket(&self, name: Option<MadeName>) {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)[1] = name;
    }

    fn serve_driver(&self, mut kicks: Kicks) -> Result<()> {
        loop {
            match LAYOUT.remote(self.memory.clone()) {
                Ok(Some(mut remote)) => {
                    announce_demo(&mut remote, &mut kicks)?;
                    let (before, mut echo) = (self.served(), WindowEcho::new(remote));
                    echo.set_remote_description("", concat!("latscope ", env!("CARGO_PKG_VERSION")));
                    let mut tell = |echo: &WindowEcho| {
                        let served = before.add_driver(echo.service_counts(), echo.faults());
                        *self.served.lock().unwrap_or_else(PoisonError::into_inner) = served;
                    };
                    let ended = echo::serve_host(&mut echo, &mut kicks, &mut tell);
                    tell(&echo);
                    ended?;
                }
                Ok(None) | Err(Fault::Stale) => drop(kicks.wait_for_kick(MILLISECOND)?),
                Err(fault) => return Err(fault.into()),
            }
        }
    }
}

/// The name that OpenAMP's own ping looks for is that of an endpoint that echoes anything.
fn announce_demo(remote: &mut RpmsgRemote<Memory>, kicks: &mut Kicks) -> io::Result<()> {
    if !remote.takes_announcements() {
        return Ok(());
    }
    let address = RpmsgService::Pty.address();
    let name = Announcement { name: DEMO, address, destroyed: false };
    match remote.send_message(address, NAME_SERVICE, &name.encode_bytes()) {
        Ok(true) => kicks.kick(),
        // A driver without a buffer for a name is not OpenAMP's.
        Ok(false) | Err(_) => Ok(()),
    }
}

/// Returns true if the driver ended, which is no error here.
fn is_end(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    matches!(kind, Some(ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset))
}
