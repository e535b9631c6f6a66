//! Lines of both programs, as the documentation of MCS shows them, with its misspellings, or as their sources of
//! October 2023 print them.

use super::McsFigureLayout;

/// Figures of the round trips so far, in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Trips {
    /// Number of round trips.
    pub count: u64,
    /// Time of the last round trip.
    pub last: u64,
    /// Shortest time of a round trip.
    pub min: u64,
    /// Longest time of a round trip.
    pub max: u64,
    /// Sum of all times.
    pub total: u64,
}

impl Trips {
    /// Adds a round trip of so many ns.
    pub fn add_trip(&mut self, ns: u64) {
        self.min = if self.count == 0 { ns } else { self.min.min(ns) };
        self.max = self.max.max(ns);
        self.total += ns;
        self.last = ns;
        self.count += 1;
    }

    /// Count, and last, shortest, average and longest time in whole µs.
    fn table_columns(&self) -> [u64; 5] {
        let average = self.total.checked_div(self.count).unwrap_or(0);
        let us = |ns: u64| (ns + 500) / 1000;
        [self.count, us(self.last), us(self.min), us(average), us(self.max)]
    }
}

/// Lines of mica_main about pings. `policy` is `ping_msg` or `long_ping_msg`.
pub fn pings(policy: &str, trips: &Trips, layout: McsFigureLayout) -> String {
    let [count, last, min, average, max] = trips.table_columns();
    let figures = match layout {
        McsFigureLayout::Sources => pty_pings(trips),
        McsFigureLayout::Page => format!(
            "Count:{count:>8} Realtime:{last:>8}μs Min:{min:>8}μs Avg:{average:>8}μs Max:{max:>8}μs\n"
        ),
    };
    format!("Policy: {policy}.  Reply from remote os:\n{figures}")
}

/// Line of pty_test about pings.
pub(crate) fn pty_pings(trips: &Trips) -> String {
    let [count, last, min, average, max] = trips.table_columns();
    format!(
        "Count:{count:>6} | Realtime:{last:>6}μs | Min:{min:>6}μs | Avg:{average:>6}μs | Max:{max:>6}μs\n"
    )
}

/// Last line of pty_test after pings.
pub(crate) const PING_OVER: &str = "ping test over!\n";

/// First line of pty_test about bandwidth.
pub(crate) const WAITING: &str = "\nWaiting for senconds, Testing communication bandwidth...\n";

/// Line of pty_test when a signal ends it.
pub const INTERRUPTED: &str = "Test was interrupted and benchmark ended.\n";

/// Figures of the rates so far, in Mbit/s.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rates {
    /// Number of measured intervals.
    pub count: u64,
    /// Length of the last interval, in ms.
    pub elapsed: f64,
    /// Rate of the last interval.
    pub last: f64,
    /// Lowest rate of an interval.
    pub min: f64,
    /// Highest rate of an interval.
    pub max: f64,
    /// Average rate over the whole time.
    pub average: f64,
}

impl Rates {
    /// Adds an interval: its length in ms, its rate, and the average over the whole time.
    pub fn add_interval(&mut self, elapsed: f64, rate: f64, average: f64) {
        self.min = if self.count == 0 { rate } else { self.min.min(rate) };
        self.max = self.max.max(rate);
        (self.elapsed, self.last, self.average) = (elapsed, rate, average);
        self.count += 1;
    }
}

/// Line of pty_test about bandwidth.
pub fn rates(rates: &Rates, layout: McsFigureLayout) -> String {
    let Rates { count, elapsed, last, min, max, average } = rates;
    let end = if layout == McsFigureLayout::Page { "s" } else { "" };
    format!(
        "Count: {count:>4} | Elapsed: {elapsed:>6.2} milliseconds | Min: {min:>6.2} Mbps | realtime: {last:>6.2} Mbps | \
         Avg: {average:>6.2} Mbps | Max: {max:>6.2} Mbps{end}\n"
    )
}

/// Last lines of pty_test after measuring bandwidth.
pub fn format_written(bytes: u64) -> String {
    format!("{bytes} Bytes was written!\nbandwidth test over!\n")
}

/// Text of mica_main about its terminal.
pub fn format_terminal(descriptor: i32, path: &str) -> String {
    format!(
        "pty master fd is :{descriptor}\npls open {path} to test pty\npty_thread for pty-ping is runnning\n"
    )
}

/// Line of mica_main about an endpoint whose other side exists.
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
        let ping = pings("ping_msg", &trips(23, [1339, 326, 1274, 3578]), McsFigureLayout::Page);
        assert_eq!(all + &ping, documented!("mica_main-ping"));
        assert_eq!(format_terminal(4, "/dev/pts/0") + &pty, documented!("mica_main-pty"));
        let last = Rates { count: 30, elapsed: 210.0, last: 0.12, min: 0.02, max: 2.02, average: 0.18 };
        assert_eq!(
            WAITING.to_owned() + &rates(&last, McsFigureLayout::Page) + &format_written(221_184),
            documented!("pty_test-bandwidth")
        );
        let ping = pty_pings(&trips(10, [384, 121, 1271, 4497]));
        assert_eq!(ping + PING_OVER, documented!("pty_test-ping"));
    }

    #[test]
    fn every_line_is_as_the_sources_of_2023_print_it() {
        let ping = pings("ping_msg", &trips(23, [1339, 326, 1274, 3578]), McsFigureLayout::Sources);
        let figures = "Count:    23 | Realtime:  1339μs | Min:   326μs | Avg:  1274μs | Max:  3578μs\n";
        assert_eq!(ping, format!("Policy: ping_msg.  Reply from remote os:\n{figures}"));
        assert!(rates(&Rates::default(), McsFigureLayout::Sources).ends_with("Max:   0.00 Mbps\n"));
    }

    #[test]
    fn trips_and_rates_add_up() {
        let mut trips = Trips::default();
        assert_eq!(trips.table_columns(), [0; 5]);
        [1_499, 1_500, 9_600].into_iter().for_each(|ns| trips.add_trip(ns));
        assert_eq!(trips.table_columns(), [3, 10, 1, 4, 10]);
        let mut rates = Rates::default();
        rates.add_interval(100.0, 3.0, 3.0);
        rates.add_interval(101.0, 2.0, 2.5);
        assert_eq!(rates, Rates { count: 2, elapsed: 101.0, last: 2.0, min: 2.0, max: 3.0, average: 2.5 });
    }
}
