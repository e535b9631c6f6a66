//! Samples in shared memory, published by one process and received by the other, and events that announce them, by the
//! library iceoryx2. The library is measured.

use super::endpoint::{Endpoint, Side, broken, random_name, transport, unavailable};
use super::lifeline::{self, Lifeline};
use crate::transaction::{EndpointHandle, EndpointPair, Failure, Transport, Unavailable};
use ::iceoryx2::port::listener::Listener;
use ::iceoryx2::port::notifier::Notifier;
use ::iceoryx2::port::publisher::Publisher;
use ::iceoryx2::port::subscriber::Subscriber;
use ::iceoryx2::port::update_connections::UpdateConnections;
use ::iceoryx2::prelude::*;
use ::iceoryx2::service::ipc_threadsafe::Service as Shared;
use ::iceoryx2::service::port_factory::event::PortFactory as Events;
use latscope_process::leftover::{Leftover, Leftovers};
use std::fmt::Debug;
use std::time::Duration;

pub(super) static TRANSPORT: Transport = transport::<Peer>(
    "iceoryx2",
    "iceoryx2, samples and events",
    "iceoryx2: publish_subscribe and event",
    open,
);

fn open(_: usize) -> Result<EndpointPair, Unavailable> {
    let directory = tempfile::Builder::new().prefix(".latscope-").tempdir().map_err(|error| {
        unavailable("no directory for iceoryx2", error, "set TMPDIR to a directory you may write to")
    })?;
    let directory = directory.keep();
    let prefix = random_name();
    let words = vec![directory.display().to_string(), prefix.clone()];
    let leftovers = Leftovers::from([Leftover::Directory(directory), Leftover::SharedMemory(prefix)]);
    Ok(EndpointPair { words, leftovers, ..lifeline::endpoint_pair(Vec::new(), Vec::new())? })
}

/// Time to wait for an object that the other process is just making.
const CREATION: Duration = Duration::from_secs(10);

fn node(handle: &EndpointHandle) -> Result<Node<Shared>, Failure> {
    let [directory, prefix] = &handle.words[..] else {
        return Err(broken("no directory and prefix were handed over"));
    };
    let mut config = Config::default();
    config.global.set_root_path(&Path::new(directory.as_bytes()).map_err(debug)?);
    config.global.prefix = FileName::new(prefix.as_bytes()).map_err(debug)?;
    config.global.creation_timeout = CREATION;
    // Errors are reported here. The signals of this process are none of the library's business.
    set_log_level(LogLevel::Fatal);
    opened(|| {
        let node = NodeBuilder::new().config(&config);
        node.signal_handling_mode(SignalHandlingMode::Disabled).create::<Shared>()
    })
}

/// Endpoint of two services for samples and two for events.
struct Peer {
    publisher: Publisher<Shared, [u8], ()>,
    subscriber: Subscriber<Shared, [u8], ()>,
    notifier: Notifier<Shared>,
    events: Events<Shared>,
    listener: Listener<Shared>,
    lifeline: Lifeline,
    _node: Node<Shared>,
}

/// Failed waits for one message after which it is not signals that end them.
const MOST_FAILURES: u32 = 10_000;

/// Refusals, a millisecond apart, after which it is not to be had.
const MOST_REFUSALS: u32 = 1000;

/// Names of the services for the samples of each side.
const SERVICES: [&str; 2] = ["there", "back"];

/// Opens a service that both processes make or open at the same time. The library may refuse this for a moment, or
/// after a signal, so the function tries again.
fn opened<T, E: Debug>(mut open: impl FnMut() -> Result<T, E>) -> Result<T, Failure> {
    for _ in 0..MOST_REFUSALS {
        if let Ok(opened) = open() {
            return Ok(opened);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    open().map_err(debug)
}

fn join(mut handle: EndpointHandle, side: Side) -> Result<Peer, Failure> {
    let node = node(&handle)?;
    let lifeline = lifeline::of(&mut handle)?;
    let own = ServiceName::new(SERVICES[side.own()]).map_err(debug)?;
    let other = ServiceName::new(SERVICES[side.other()]).map_err(debug)?;
    let samples =
        |name: &ServiceName| node.service_builder(name).publish_subscribe::<[u8]>().open_or_create();
    let events = |name: &ServiceName| node.service_builder(name).event().open_or_create();
    let (samples_out, samples_in) = (opened(|| samples(&own))?, opened(|| samples(&other))?);
    let (events_out, events_in) = (opened(|| events(&own))?, opened(|| events(&other))?);
    let publisher = samples_out.publisher_builder().initial_max_slice_len(handle.payload).create();
    let listener = events_in.listener_builder().create().map_err(debug)?;
    let alarm = events_in.notifier_builder().create().map_err(debug)?;
    // It fails only where no process listens.
    let wake = move || drop(alarm.notify());
    let peer = Peer {
        publisher: publisher.map_err(debug)?,
        subscriber: samples_in.subscriber_builder().create().map_err(debug)?,
        notifier: events_out.notifier_builder().create().map_err(debug)?,
        events: events_out,
        listener,
        lifeline: Lifeline::watch(lifeline, wake)?,
        _node: node,
    };
    // What is published before there is a subscriber is lost.
    while samples_out.dynamic_config().number_of_subscribers() == 0
        || samples_in.dynamic_config().number_of_publishers() == 0
        || peer.events.dynamic_config().number_of_listeners() == 0
    {
        if peer.lifeline.gone() {
            return Err(Failure::Gone);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    peer.publisher.update_connections().map_err(debug)?;
    Ok(peer)
}

impl Peer {
    /// No listener was notified of a sample: a signal came between, or the library gave the
    /// way to the listener up, which only a new notifier looks for again.
    #[cold]
    fn tell_anew(&mut self) -> Result<(), Failure> {
        for _ in 0..MOST_FAILURES {
            if self.lifeline.gone() {
                return Err(Failure::Gone);
            }
            self.notifier = self.events.notifier_builder().create().map_err(debug)?;
            if self.notifier.notify().map_err(debug)? > 0 {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Err(broken("iceoryx2: no process could be notified of a sample"))
    }
}

impl Endpoint for Peer {
    /// Samples that are published too fast are lost.
    const QUEUES: bool = false;

    fn join(handle: EndpointHandle, side: Side) -> Result<Self, Failure> {
        join(handle, side)
    }

    fn put(&mut self, message: &[u8]) -> Result<(), Failure> {
        if self.lifeline.gone() {
            return Err(Failure::Gone);
        }
        let sample = self.publisher.loan_slice_uninit(message.len()).map_err(debug)?;
        sample.write_from_slice(message).send().map_err(debug)?;
        if self.notifier.notify().map_err(debug)? > 0 { Ok(()) } else { self.tell_anew() }
    }

    fn take(&mut self, buffer: &mut [u8]) -> Result<usize, Failure> {
        let mut failures = 0;
        loop {
            if let Some(sample) = self.subscriber.receive().map_err(debug)? {
                let fits = sample.len().min(buffer.len());
                buffer[..fits].copy_from_slice(&sample[..fits]);
                return Ok(sample.len());
            }
            if self.lifeline.gone() {
                return Err(Failure::Gone);
            }
            // To the library a signal is a failure of its own, like any other.
            if let Err(error) = self.listener.blocking_wait_one() {
                failures += 1;
                if failures > MOST_FAILURES {
                    return Err(debug(error));
                }
            }
        }
    }
}

/// The errors of the library have names and little else.
#[cold]
fn debug(error: impl Debug) -> Failure {
    Failure::Broken(format!("iceoryx2: {error:?}"))
}
