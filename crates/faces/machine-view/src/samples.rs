//! Sockets from look to look: as rows of a Parquet file, and as lines of a plot.

use std::io::Write;
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, StringBuilder, TimestampNanosecondBuilder, UInt32Builder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use connections::{
    Follower, Live, Point, Series, Source, TcpInfo, TcpLook, TcpSocket, Watch, contrasts,
};
use page::safe::printable;
use page::text::disk_rate;
use page::{ParquetFile, PlotStyle, TableNotWritten, sparkline};
use units::{ByteSize, Clock, Sleep, Timestamp};

/// Where there is no terminal to fit.
const WIDTH: usize = 60;

type Number = (&'static str, fn(&TcpInfo) -> Option<u64>);

/// Columns of numbers, by the names of `ss -i` where it has one.
const NUMBERS: [Number; 21] = [
    ("cwnd_segments", |info| Some(info.congestion_window.into())),
    ("ssthresh_segments", |info| Some(info.slow_start_threshold.into())),
    ("rtt_us", |info| Some(info.rtt_us.into())),
    ("rtt_deviation_us", |info| Some(info.rtt_deviation_us.into())),
    ("min_rtt_us", |info| info.min_rtt_us.map(u64::from)),
    ("rto_us", |info| Some(info.rto_us.into())),
    ("send_mss", |info| Some(info.send_mss.into())),
    ("path_mtu", |info| Some(info.path_mtu.into())),
    ("unacked_segments", |info| Some(info.unacked.into())),
    ("lost_segments", |info| Some(info.lost.into())),
    ("retransmitted_segments", |info| Some(info.retransmitted.into())),
    ("bytes_acked", |info| info.bytes_acked),
    ("bytes_received", |info| info.bytes_received),
    ("bytes_sent", |info| info.bytes_sent),
    ("bytes_retransmitted", |info| info.bytes_retransmitted),
    ("unsent_bytes", |info| info.unsent_bytes.map(u64::from)),
    ("delivery_bytes_per_s", |info| info.delivery_rate),
    ("busy_us", |info| info.busy_us),
    ("receiver_limited_us", |info| info.receiver_limited_us),
    ("buffer_limited_us", |info| info.buffer_limited_us),
    ("send_window", |info| info.send_window.map(u64::from)),
];

type Flag = (&'static str, fn(&TcpInfo) -> bool);

const FLAGS: [Flag; 4] = [
    ("sack", |info| info.options.sack),
    ("window_scale", |info| info.options.window_scale),
    ("timestamps", |info| info.options.timestamps),
    ("app_limited", |info| info.is_app_limited),
];

/// A Parquet file with a row for each socket and look.
#[derive(Debug)]
pub struct SocketSamples<W: Write + Send> {
    file: ParquetFile<W>,
    schema: SchemaRef,
}

/// Connections that have plots.
const KEPT: usize = 10;

/// Sockets, and what connections did from look to look.
#[expect(missing_debug_implementations, reason = "a clock")]
pub struct Followed<'c> {
    live: Live,
    clock: &'c dyn Sleep,
    follower: Option<Follower>,
}

impl<'c> Followed<'c> {
    /// Looks only, or follows connections as well.
    pub fn new(live: Live, clock: &'c dyn Sleep, follows: bool) -> Self {
        Self { live, clock, follower: follows.then(Follower::default) }
    }

    /// The connections to be shown: pairs that should be alike and are not, then those that sent
    /// most; `None` where none was followed.
    pub fn chosen(self, watch: &Watch) -> Option<Vec<Series>> {
        Some(self.follower?.chosen(&contrasts(watch), KEPT))
    }
}

impl Source for Followed<'_> {
    fn look(&mut self) -> Result<TcpLook, connections::Error> {
        let look = self.live.look()?;
        if let Some(follower) = &mut self.follower {
            follower.take(self.clock.boottime_ns(), &look);
        }
        Ok(look)
    }

    fn glance(&mut self, at_ns: i64) {
        self.live.glance(at_ns);
    }
}

/// Looks that are kept besides.
#[expect(missing_debug_implementations, reason = "a clock")]
pub struct Sampled<'c, S, W: Write + Send> {
    source: S,
    samples: Option<SocketSamples<W>>,
    clock: &'c dyn Clock,
    /// Samples could not be written: looking goes on, for what it finds.
    failed: Option<TableNotWritten>,
}

impl<'c, S: Source, W: Write + Send> Sampled<'c, S, W> {
    /// Looks at a source; where there is a file, what it shows goes there.
    pub fn new(source: S, samples: Option<SocketSamples<W>>, clock: &'c dyn Clock) -> Self {
        Self { source, samples, clock, failed: None }
    }

    /// The source again, and what the file was written to.
    ///
    /// # Errors
    ///
    /// The file could not be written.
    pub fn finish(self) -> Result<(S, Option<W>), TableNotWritten> {
        match self.failed {
            Some(error) => Err(error),
            None => Ok((self.source, self.samples.map(SocketSamples::finish).transpose()?)),
        }
    }
}

impl<S: Source, W: Write + Send> Source for Sampled<'_, S, W> {
    fn look(&mut self) -> Result<TcpLook, connections::Error> {
        let look = self.source.look()?;
        if let Some(samples) = self.samples.as_mut().filter(|_| self.failed.is_none()) {
            self.failed = samples.add(self.clock.realtime(), &look).err();
        }
        Ok(look)
    }

    fn glance(&mut self, at_ns: i64) {
        self.source.glance(at_ns);
    }
}

impl<W: Write + Send> SocketSamples<W> {
    /// Begins the file.
    pub fn new(file: W) -> Result<Self, TableNotWritten> {
        let time = DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()));
        let mut fields = vec![Field::new("time_ns", time, false)];
        let texts = ["namespace", "state", "local", "remote", "process_name", "congestion"];
        fields.extend(texts.map(|name| Field::new(name, DataType::Utf8, true)));
        let own = ["process", "receive_queue", "send_queue"];
        fields.extend(own.map(|name| Field::new(name, DataType::UInt32, true)));
        fields.extend(NUMBERS.map(|(name, _)| Field::new(name, DataType::UInt64, true)));
        fields.extend(FLAGS.map(|(name, _)| Field::new(name, DataType::Boolean, true)));
        let schema = Arc::new(Schema::new(fields));
        Ok(Self { file: ParquetFile::new(file, Arc::clone(&schema))?, schema })
    }

    /// Adds what a look showed.
    pub fn add(&mut self, at: Timestamp, look: &TcpLook) -> Result<(), TableNotWritten> {
        let rows = rows(&self.schema, at, look)?;
        self.file.write(&rows)
    }

    /// Writes the rest; gives the file back.
    pub fn finish(self) -> Result<W, TableNotWritten> {
        self.file.finish()
    }
}

fn rows(schema: &SchemaRef, at: Timestamp, look: &TcpLook) -> Result<RecordBatch, ArrowError> {
    let sockets = || {
        let all = look.namespaces.iter();
        all.flat_map(|(place, seen)| seen.sockets.iter().map(move |socket| (place, socket)))
    };
    let mut times = TimestampNanosecondBuilder::new().with_timezone("UTC");
    let mut texts: [StringBuilder; 6] = Default::default();
    let mut own: [UInt32Builder; 3] = Default::default();
    for (place, socket) in sockets() {
        times.append_value(at.0);
        let owner = look.owners.get(&socket.inode);
        let of_row = [
            Some(place.name.clone()),
            Some(format!("{:?}", socket.state).to_lowercase()),
            Some(socket.local.to_string()),
            Some(socket.remote.to_string()),
            owner.map(|owner| owner.name.clone()),
            socket.congestion.clone(),
        ];
        texts.iter_mut().zip(of_row).for_each(|(column, text)| column.append_option(text));
        let of_row =
            [owner.map(|owner| owner.process), Some(socket.receive_queue), Some(socket.send_queue)];
        own.iter_mut().zip(of_row).for_each(|(column, number)| column.append_option(number));
    }
    let mut columns: Vec<ArrayRef> = vec![Arc::new(times.finish())];
    columns.extend(texts.iter_mut().map(|column| -> ArrayRef { Arc::new(column.finish()) }));
    columns.extend(own.iter_mut().map(|column| -> ArrayRef { Arc::new(column.finish()) }));
    let infos = || sockets().map(|(_, socket): (_, &TcpSocket)| socket.info);
    columns.extend(NUMBERS.map(|(_, read)| -> ArrayRef {
        let mut column = UInt64Builder::new();
        infos().for_each(|info| column.append_option(info.as_ref().and_then(read)));
        Arc::new(column.finish())
    }));
    columns.extend(FLAGS.map(|(_, read)| -> ArrayRef {
        let mut column = BooleanBuilder::new();
        infos().for_each(|info| column.append_option(info.as_ref().map(read)));
        Arc::new(column.finish())
    }));
    RecordBatch::try_new(Arc::clone(schema), columns)
}

type Line = (&'static str, fn(&Point) -> u64, fn(u64) -> String);

/// What is plotted of a connection, and how the most of it is said.
const LINES: [Line; 3] = [
    ("window", |point| point.congestion_window.into(), |most| format!("{most} segments")),
    ("round trip", |point| point.rtt_us.into(), |most| format!("{most} us")),
    ("delivered", |point| point.delivery_rate, disk_rate),
];

/// The window, round trip and delivery rate of connections over time, from 0 to the most of each.
pub fn socket_series(series: &[Series], style: PlotStyle) -> String {
    let width = style.width.saturating_sub(40).clamp(10, WIDTH);
    let mut text = String::new();
    for one in series {
        let owner = one.owner.as_ref().map(|owner| format!(", {}", printable(&owner.to_string())));
        text.push_str(&line(&format!(
            "{} to {}{}: {} meanwhile",
            one.socket.local,
            one.socket.remote,
            owner.unwrap_or_default(),
            ByteSize(one.carried()),
        )));
        for (name, of, words) in LINES {
            let values: Vec<u64> = one.points.iter().map(of).collect();
            let most = values.iter().copied().max().unwrap_or(0);
            let row = sparkline(&values, width, style.is_terminal);
            text.push_str(&line(&format!("  {name:<11}{row:<width$}  {}", words(most))));
        }
    }
    text
}

fn line(text: &str) -> String {
    format!("{}\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use arrow_array::Array as _;
    use arrow_array::cast::AsArray as _;
    use arrow_array::types::UInt64Type;
    use connections::{NamespaceLook, Place, TcpState};

    use super::*;

    fn socket(info: Option<&TcpInfo>) -> TcpSocket {
        let ends = ["10.0.0.1:80", "10.0.0.2:4000"].map(|end| end.parse().unwrap());
        TcpSocket {
            cookie: 1,
            receive_queue: 3,
            congestion: Some("cubic".to_owned()),
            info: info.copied(),
            ..TcpSocket::new(TcpState::Established, ends)
        }
    }

    #[test]
    fn a_row_has_what_the_kernel_told_and_nothing_where_it_did_not() {
        let info = TcpInfo { rtt_us: 77, delivery_rate: None, ..TcpInfo::default() };
        let sockets = vec![socket(Some(&info)), socket(None)];
        let seen = NamespaceLook { sockets, ..NamespaceLook::default() };
        let look = TcpLook { namespaces: vec![(Place::default(), seen)], ..TcpLook::default() };
        let mut samples = SocketSamples::new(Vec::new()).unwrap();
        samples.add(Timestamp(5), &look).unwrap();
        let rows = rows(&samples.schema, Timestamp(5), &look).unwrap();
        assert!(samples.finish().unwrap().starts_with(b"PAR1"));
        let number = |name: &str| rows[name].as_primitive::<UInt64Type>().clone();
        assert_eq!(rows.num_rows(), 2);
        assert_eq!((number("rtt_us").value(0), number("rtt_us").is_valid(1)), (77, false));
        assert!(!number("delivery_bytes_per_s").is_valid(0), "an older kernel");
        assert_eq!(rows["local"].as_string::<i32>().value(1), "10.0.0.1:80");
    }

    #[test]
    fn a_window_that_collapses_is_seen() {
        let point = |congestion_window| Point { congestion_window, ..Point::default() };
        let mut follower = Follower::default();
        let info = TcpInfo { congestion_window: 80, ..TcpInfo::default() };
        let seen = NamespaceLook { sockets: vec![socket(Some(&info))], ..NamespaceLook::default() };
        follower
            .take(0, &TcpLook { namespaces: vec![(Place::default(), seen)], ..TcpLook::default() });
        let mut series = follower.chosen(&[], 1);
        series[0].points.extend([point(80), point(10)]);
        let text = socket_series(&series, PlotStyle { width: 60, is_terminal: false });
        assert!(text.starts_with("10.0.0.1:80 to 10.0.0.2:4000: 0 B meanwhile\n"), "{text}");
        assert!(text.contains("  window     ##.") && text.contains("80 segments"), "{text}");
    }
}
