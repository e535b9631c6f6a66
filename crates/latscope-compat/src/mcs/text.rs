//! Their lines, as the documentation of MCS shows them, misspellings and all.

/// Round trips so far, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Trips {
    /// How many.
    pub count: u64,
    /// The last.
    pub last: u64,
    /// The shortest.
    pub min: u64,
    /// The longest.
    pub max: u64,
    /// All of them together.
    pub total: u64,
}

impl Trips {
    /// Counts one more.
    pub fn add(&mut self, ns: u64) {
        self.min = if self.count == 0 { ns } else { self.min.min(ns) };
        self.max = self.max.max(ns);
        self.total += ns;
        self.last = ns;
        self.count += 1;
    }

    /// Count, and last, shortest, average and longest, in whole µs.
    fn columns(&self) -> [u64; 5] {
        let average = self.total.checked_div(self.count).unwrap_or(0);
        let us = |ns: u64| (ns + 500) / 1000;
        [self.count, us(self.last), us(self.min), us(average), us(self.max)]
    }
}

/// The two lines of mica_main; `policy` is `ping_msg` or `long_ping_msg`.
pub fn pings(policy: &str, trips: &Trips) -> String {
    let [count, last, min, average, max] = trips.columns();
    format!(
        "Policy: {policy}.  Reply from remote os:\n\
         Count:{count:>8} Realtime:{last:>8}μs Min:{min:>8}μs Avg:{average:>8}μs Max:{max:>8}μs\n"
    )
}

/// The line of pty_test.
pub(crate) fn pty_pings(trips: &Trips) -> String {
    let [count, last, min, average, max] = trips.columns();
    format!(
        "Count:{count:>6} | Realtime:{last:>6}μs | Min:{min:>6}μs | Avg:{average:>6}μs | Max:{max:>6}μs\n"
    )
}

/// The last line of the pings of pty_test.
pub(crate) const PING_OVER: &str = "ping test over!\n";

/// What pty_test says first of bandwidth.
pub(crate) const WAITING: &str = "\nWaiting for senconds, Testing communication bandwidth...\n";

/// What it says when a signal ends it.
pub const INTERRUPTED: &str = "Test was interrupted and benchmark ended.\n";

/// Rates so far, Mbit/s.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rates {
    /// How many intervals.
    pub count: u64,
    /// The length of the last one, ms.
    pub elapsed: f64,
    /// The rate of the last one.
    pub last: f64,
    /// The lowest.
    pub min: f64,
    /// The highest.
    pub max: f64,
    /// Over all of the time.
    pub average: f64,
}

impl Rates {
    /// Counts an interval.
    pub fn add(&mut self, elapsed: f64, rate: f64, average: f64) {
        self.min = if self.count == 0 { rate } else { self.min.min(rate) };
        self.max = self.max.max(rate);
        (self.elapsed, self.last, self.average) = (elapsed, rate, average);
        self.count += 1;
    }
}

/// The line of bandwidth.
pub fn rates(rates: &Rates) -> String {
    let Rates { count, elapsed, last, min, max, average } = rates;
    format!(
        "Count: {count:>4} | Elapsed: {elapsed:>6.2} milliseconds | Min: {min:>6.2} Mbps | realtime: {last:>6.2} Mbps | \
         Avg: {average:>6.2} Mbps | Max: {max:>6.2} Mbpss\n"
    )
}

/// The last lines of bandwidth.
pub fn written(bytes: u64) -> String {
    format!("{bytes} Bytes was written!\nbandwidth test over!\n")
}

/// What mica_main says of its terminal.
pub fn terminal(descriptor: i32, path: &str) -> String {
    format!(
        "pty master fd is :{descriptor}\npls open {path} to test pty\npty_thread for pty-ping is runnning\n"
    )
}

/// What mica_main says of an endpoint whose other side is there.
pub fn matched(name: &str, id: u32) -> String {
    format!("found matched endpoint, creating {name} with id:{id} in host os\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! documented {
        ($name:literal) => {
            include_str!(concat!("../../tests/golden/mcs/", $name, ".txt"))
        };
    }

    fn trips(count: u64, [last, min, average, max]: [u64; 4]) -> Trips {
        let [last, min, average, max] = [last, min, average, max].map(|us| us * 1000);
        Trips { count, last, min, max, total: average * count }
    }

    #[test]
    fn every_line_is_as_documented() {
        let pty = matched("pty-ping", 3);
        let all = [&pty, &matched("rpc-ping", 1), &matched("rpc-long-ping", 2)].map(String::as_str).concat();
        let ping = pings("ping_msg", &trips(23, [1339, 326, 1274, 3578]));
        assert_eq!(all + &ping, documented!("mica_main-ping"));
        assert_eq!(terminal(4, "/dev/pts/0") + &pty, documented!("mica_main-pty"));
        let last = Rates { count: 30, elapsed: 210.0, last: 0.12, min: 0.02, max: 2.02, average: 0.18 };
        assert_eq!(WAITING.to_owned() + &rates(&last) + &written(221_184), documented!("pty_test-bandwidth"));
        let ping = pty_pings(&trips(10, [384, 121, 1271, 4497]));
        assert_eq!(ping + PING_OVER, documented!("pty_test-ping"));
    }

    #[test]
    fn trips_and_rates_add_up() {
        let mut trips = Trips::default();
        assert_eq!(trips.columns(), [0; 5]);
        [1_499, 1_500, 9_600].into_iter().for_each(|ns| trips.add(ns));
        assert_eq!(trips.columns(), [3, 10, 1, 4, 10]);
        let mut rates = Rates::default();
        rates.add(100.0, 3.0, 3.0);
        rates.add(101.0, 2.0, 2.5);
        assert_eq!(rates, Rates { count: 2, elapsed: 101.0, last: 2.0, min: 2.0, max: 3.0, average: 2.5 });
    }
}
