//! Decoding of the bytes of events.

use super::page::TracePageLayout;
use super::print::Printer;
use super::{
    Field, KernelTraceEvent, KernelTraceEventKind, Loss, TraceEventFormat, TraceEventTask,
    TraceFormatCatalogue, TraceName,
};
use std::collections::{HashMap, HashSet};

/// Maximum number of names that are kept; names of threads are arbitrary and change.
const NAMES: usize = 8192;

/// Decoder of raw pages into events.
#[derive(Debug)]
pub struct Decoder {
    layout: Option<TracePageLayout>,
    /// `common_type` and `common_pid`, alike in all events.
    kind: Option<Field>,
    thread: Option<Field>,
    readers: HashMap<u16, TraceEventReader>,
    names: HashSet<TraceName>,
}

/// Reader of one kind of event.
#[derive(Debug)]
struct TraceEventReader {
    /// Name of the event; for the CPU's own interrupts without `_entry` and `_exit`.
    name: TraceName,
    how: How,
}

#[derive(Debug)]
enum How {
    /// Event made of the fields that [`KINDS`] names, in that order.
    Known(Make, Vec<Field>),
    /// Stack: the field with its length in words, and the offset of the first word, bytes.
    Stack(Field, usize),
    /// Event of which only the text is used.
    Printed(Printer),
}

type Make = fn(&mut EventFieldCursor) -> Option<KernelTraceEventKind>;

/// Kinds of events by name, with their fields and the function that makes them.
const KINDS: &[(&str, &[&str], Make)] = &[
    (
        "sched_switch",
        &["prev_comm", "prev_pid", "prev_prio", "prev_state", "next_comm", "next_pid", "next_prio"],
        |values| {
            let from = values.task()?;
            let state = values.next_number()?;
            Some(KernelTraceEventKind::Switch { from, state, to: values.task()? })
        },
    ),
    ("sched_waking", WAKE, |values| {
        Some(KernelTraceEventKind::Waking { task: values.task()?, target: values.next_u32()? })
    }),
    ("sched_wakeup", WAKE, |values| {
        Some(KernelTraceEventKind::Wakeup { task: values.task()?, target: values.next_u32()? })
    }),
    ("sched_wakeup_new", WAKE, |values| {
        Some(KernelTraceEventKind::WakeupNew { task: values.task()?, target: values.next_u32()? })
    }),
    ("irq_handler_entry", &["irq", "name"], |values| {
        Some(KernelTraceEventKind::IrqEntry { irq: values.next_u32()?, name: values.next_text()? })
    }),
    ("irq_handler_exit", &["irq"], |values| Some(KernelTraceEventKind::IrqExit { irq: values.next_u32()? })),
    ("softirq_raise", &["vec"], |values| {
        Some(KernelTraceEventKind::SoftirqRaise { vector: values.next_u32()? })
    }),
    ("softirq_entry", &["vec"], |values| {
        Some(KernelTraceEventKind::SoftirqEntry { vector: values.next_u32()? })
    }),
    ("softirq_exit", &["vec"], |values| {
        Some(KernelTraceEventKind::SoftirqExit { vector: values.next_u32()? })
    }),
    ("hrtimer_expire_entry", &["hrtimer", "now"], |values| {
        Some(KernelTraceEventKind::TimerEntry { timer: values.next_number()?, now: values.next_number()? })
    }),
    ("hrtimer_expire_exit", &["hrtimer"], |values| {
        Some(KernelTraceEventKind::TimerExit { timer: values.next_number()? })
    }),
    ("cpu_idle", &["state"], |values| {
        // The kernel's PWR_EVENT_EXIT is -1.
        let state = values.next_u32()?;
        Some(KernelTraceEventKind::Idle { state: (state != u32::MAX).then_some(state) })
    }),
    ("nmi_handler", &["delta_ns"], |values| Some(KernelTraceEventKind::Nmi { ns: values.next_number()? })),
    ("nmi_noise", &["duration"], |values| Some(KernelTraceEventKind::Nmi { ns: values.next_number()? })),
    ("workqueue_execute_start", &["function"], |values| {
        Some(KernelTraceEventKind::Work { function: values.next_number()? })
    }),
    ("csd_function_entry", &["func"], |values| {
        Some(KernelTraceEventKind::Call { function: values.next_number()? })
    }),
    ("timerlat", TIMERLAT, timerlat),
    ("timerlat_sample", TIMERLAT, timerlat),
    ("print", &["buf"], |values| Some(KernelTraceEventKind::Mark { text: values.next_text()? })),
];

const WAKE: &[&str] = &["comm", "pid", "prio", "target_cpu"];
const TIMERLAT: &[&str] = &["seqnum", "context", "timer_latency"];

fn timerlat(values: &mut EventFieldCursor) -> Option<KernelTraceEventKind> {
    Some(KernelTraceEventKind::Timerlat {
        turn: values.next_number()?,
        context: values.next_u32()?,
        ns: values.next_number()?,
    })
}

/// System of the events of the CPU's own interrupts, two for each interrupt.
const VECTORS: &str = "irq_vectors";

fn vector_entry(values: &mut EventFieldCursor) -> Option<KernelTraceEventKind> {
    Some(KernelTraceEventKind::VectorEntry { vector: values.next_u32()?, name: values.name.clone() })
}

fn vector_exit(values: &mut EventFieldCursor) -> Option<KernelTraceEventKind> {
    Some(KernelTraceEventKind::VectorExit { vector: values.next_u32()?, name: values.name.clone() })
}

impl TraceEventReader {
    fn for_format(system: &str, format: &TraceEventFormat) -> TraceEventReader {
        TraceEventReader::for_known_kind(system, format)
            .or_else(|| TraceEventReader::stack(format))
            .unwrap_or_else(|| TraceEventReader {
                name: format.name.as_str().into(),
                how: How::Printed(Printer::for_format(format)),
            })
    }

    fn stack(format: &TraceEventFormat) -> Option<TraceEventReader> {
        let (size, caller) = (format.field("size")?.clone(), format.field("caller")?.offset);
        let name = format.name.as_str();
        (name == "kernel_stack")
            .then(|| TraceEventReader { name: name.into(), how: How::Stack(size, caller) })
    }

    fn for_known_kind(system: &str, format: &TraceEventFormat) -> Option<TraceEventReader> {
        let name = format.name.as_str();
        let (make, fields, name): (Make, _, _) = match KINDS.iter().find(|kind| kind.0 == name) {
            Some((_, fields, make)) => (*make, *fields, name),
            None if system != VECTORS => return None,
            None => match (name.strip_suffix("_entry"), name.strip_suffix("_exit")) {
                (Some(name), _) => (vector_entry, &["vector"][..], name),
                (_, Some(name)) => (vector_exit, &["vector"][..], name),
                _ => return None,
            },
        };
        let fields = fields.iter().map(|name| format.field(name).cloned()).collect::<Option<_>>()?;
        Some(TraceEventReader { name: name.into(), how: How::Known(make, fields) })
    }
}

/// Values of one event, in order.
struct EventFieldCursor<'a> {
    data: &'a [u8],
    fields: std::slice::Iter<'a, Field>,
    name: &'a TraceName,
    names: &'a mut HashSet<TraceName>,
}

impl EventFieldCursor<'_> {
    fn next_number(&mut self) -> Option<u64> {
        self.fields.next()?.number(self.data)
    }

    fn next_u32(&mut self) -> Option<u32> {
        self.next_number().map(|number| number as u32)
    }

    fn next_text(&mut self) -> Option<TraceName> {
        let text = String::from_utf8_lossy(self.fields.next()?.text(self.data)?);
        let text = text.trim_end();
        if let Some(name) = self.names.get(text) {
            return Some(name.clone());
        }
        if self.names.len() == NAMES {
            self.names.clear();
        }
        let name = TraceName::from(text);
        self.names.insert(name.clone());
        Some(name)
    }

    fn task(&mut self) -> Option<TraceEventTask> {
        let name = self.next_text()?;
        Some(TraceEventTask { name, tid: self.next_u32()?, priority: self.next_u32()? as i32 })
    }
}

impl Decoder {
    /// A decoder for the events of a catalogue, and no others.
    pub fn new(catalogue: &TraceFormatCatalogue) -> Decoder {
        let formats: Vec<(&str, TraceEventFormat)> = catalogue
            .events
            .iter()
            .filter_map(|(system, text)| Some((system.as_str(), TraceEventFormat::parse(text)?)))
            .collect();
        let common = |name: &str| formats.iter().find_map(|(_, format)| format.field(name).cloned());
        let readers =
            formats.iter().map(|(system, format)| (format.id, TraceEventReader::for_format(system, format)));
        Decoder {
            layout: TracePageLayout::from_catalogue(catalogue),
            kind: common("common_type"),
            thread: common("common_pid"),
            readers: readers.collect(),
            names: HashSet::new(),
        }
    }

    /// Passes on the events of a page of a CPU, in order, with `KernelTraceEventKind::Lost` if some before it are
    /// missing.
    pub fn decode_page(&mut self, cpu: u32, page: &[u8], mut take: impl FnMut(KernelTraceEvent)) {
        let Some(opened) = self.layout.as_ref().and_then(|layout| layout.parse_page(page)) else { return };
        if let Some(events) = opened.lost {
            take(KernelTraceEvent {
                at: opened.from,
                cpu,
                thread: 0,
                kind: KernelTraceEventKind::Lost { events, why: Loss::Overwritten },
            });
        }
        for (at, data) in opened.events() {
            if let Some((thread, kind)) = self.decode_event(data) {
                take(KernelTraceEvent { at, cpu, thread, kind });
            }
        }
    }

    fn decode_event(&mut self, data: &[u8]) -> Option<(u32, KernelTraceEventKind)> {
        let id = self.kind.as_ref()?.number(data)? as u16;
        let thread = self.thread.as_ref()?.number(data)? as u32;
        let reader = self.readers.get(&id)?;
        let name = &reader.name;
        let kind = match &reader.how {
            How::Printed(printer) => {
                KernelTraceEventKind::Other { name: name.clone(), fields: printer.format_event(data).into() }
            }
            How::Stack(size, at) => {
                let words = data.get(*at..)?.chunks_exact(8).take(size.number(data)? as usize);
                let address = |word: &[u8]| word.try_into().map_or(0, u64::from_le_bytes);
                KernelTraceEventKind::Stack {
                    addresses: words.map(address).filter(|address| *address != 0).collect(),
                }
            }
            How::Known(make, fields) => {
                make(&mut EventFieldCursor { data, fields: fields.iter(), name, names: &mut self.names })?
            }
        };
        Some((thread, kind))
    }
}
