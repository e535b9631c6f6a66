//! The calls whose output is compared.

/// A call: the name of its golden file, the program, and its arguments. All
/// need root, and end by themselves within a second or so.
pub type Case = (&'static str, &'static str, &'static str);

/// Enough for every form of the output. How many frames `-M` draws, if any, is
/// chance in cyclictest: it is not among them.
pub const CASES: &[Case] = &[
    ("default", "cyclictest", "-l 60 -t2 -a -m -p 80"),
    ("default-other", "cyclictest", "-l 60"),
    ("default-batch", "cyclictest", "-l 60 --policy=batch"),
    ("default-rr-nsecs", "cyclictest", "-l 60 -N --policy=rr -p 3"),
    ("default-histogram", "cyclictest", "-l 60 -p 80 -h 20"),
    ("quiet", "cyclictest", "-q -l 20 -m -t2 -a -p90"),
    ("quiet-nsecs", "cyclictest", "-q -l 20 -N -t2 -p90"),
    ("quiet-laptop", "cyclictest", "-q -l 5 --laptop"),
    ("quiet-latency", "cyclictest", "-q -l 5 --latency=7"),
    ("histogram", "cyclictest", "-q -l 20 -h 20 -t2 -p 80"),
    ("histogram-nsecs", "cyclictest", "-q -l 20 -h 20 -N -p 80"),
    ("histofall", "cyclictest", "-q -l 20 -H 20 -t2 -p 80"),
    ("histofall-one", "cyclictest", "-q -l 20 -H 20 -p 80"),
    ("verbose", "cyclictest", "-v -l 5 -p 80"),
    ("verbose-nsecs", "cyclictest", "-v -l 5 -N -p 80"),
    ("verbose-quiet", "cyclictest", "-v -q -l 5 -p 80"),
    ("verbose-histogram", "cyclictest", "-v -l 5 -h 3 -p 80"),
    ("verbose-break", "cyclictest", "-v -l 500 -b 1 -p 80 -o 400"),
    ("oscilloscope", "cyclictest", "-v -o 5 -l 12 -p 80"),
    ("break", "cyclictest", "-q -b 1 -l 500 -t2 -p 80"),
    ("break-histogram", "cyclictest", "-q -b 1 -l 500 -h 5 -t2 -p 80"),
    ("break-never", "cyclictest", "-q -b 900000 -l 5 -t2 -p 80"),
    ("spike", "cyclictest", "-q --spike=1 --spike-nodes=2 -l 10 -p 80"),
    ("spike-histogram", "cyclictest", "-q --spike=1 --spike-nodes=2 -l 10 -p 80 -h 3"),
    ("json", "cyclictest", "-q --json=- -l 20 -t2 -a -p 80"),
    ("json-histogram", "cyclictest", "-q --json=- -l 20 -a -p 80 -h 2000"),
    ("json-nsecs-break", "cyclictest", "-q --json=- -l 20 -a -p 80 -N -b 1"),
    ("default", "oslat", "-D 1 -c 0 -b 8 -B -s"),
    ("quiet-json", "oslat", "-D 1 -q -c 0 -b 12 --json=-"),
    ("version", "oslat", "-v"),
    ("default", "cyclicdeadline", "-D 1 -i 10000 -t 2"),
    ("break", "cyclicdeadline", "-D 1 -i 10000 -q -t 2 -b 1"),
    ("json", "cyclicdeadline", "-D 1 -i 10000 -q -t 2 --json=-"),
];
