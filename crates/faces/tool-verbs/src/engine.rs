//! `wirespool fleet find --engine`: the sessions of an archive, asked of an engine that others run.

use core::time::Duration;
use std::io::Write;
use std::path::PathBuf;

use ::engine::{Asked, Call, Ended, Missing, Question, Taken, Values};
use ::fleet::{Form, Marks};
use ::remote::{Error, Exchange, NoOrigin, Sent, Settings, Trust};
use clap::{Args, ValueEnum};
use host::StopFlag;
use query::Dialect;

use crate::failure::{Outcome, Usage, Verdict};
use crate::progress::{Progress, say, say_lines};
use crate::stdout;
use flags::remote::{PROGRAM, of_remote, token};

/// An answer of an engine comes in parts of about a megabyte, unless a row is larger.
const PART_BYTES_MAX: usize = 64 << 20;
/// The tables that `deploy/trino` makes, of which the views are.
const TABLES: [&str; 2] = ["session_files", "loss_files"];

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Engine {
    /// Ask a server of Trino
    Trino,
    /// Print the statement for `DuckDB` (with --explain), which is no server
    Duckdb,
}

/// An engine that reads an archive.
#[derive(Debug, Args)]
#[command(next_help_heading = "An engine instead of the sensors")]
pub struct EngineFlags {
    /// Ask an engine that reads the archive of all sensors (docs/archive.md), and no sensor
    #[arg(long, value_enum)]
    engine: Option<Engine>,
    /// Where it is: `https://HOST[:PORT]`, or http on this machine
    #[arg(long, value_name = "URL", requires = "engine")]
    url: Option<String>,
    /// Its catalog
    #[arg(long, value_name = "NAME", requires = "engine", default_value = "wirespool")]
    catalog: String,
    /// The schema in it that has the tables
    #[arg(long, value_name = "NAME", requires = "engine", default_value = "archive")]
    schema: String,
    /// Who asks, as it is told
    #[arg(long, value_name = "NAME", requires = "engine", default_value = "wirespool")]
    user: String,
    /// The token for it, in a file that only its owner may read; else `WIRESPOOL_TOKEN`
    #[arg(long, value_name = "FILE", requires = "engine")]
    engine_token_file: Option<PathBuf>,
    /// The certificates to believe, in PEM, instead of the system's
    #[arg(long, value_name = "FILE", requires = "engine")]
    engine_ca: Option<PathBuf>,
    /// Let it look for new partitions first: there is one for each sensor and hour
    #[arg(long, requires = "engine")]
    sync: bool,
    /// Print the statement, and ask nobody
    #[arg(long, requires = "engine")]
    explain: bool,
}

/// What is asked of it.
#[derive(Debug)]
pub struct Search<'a> {
    /// Which sessions, of which sensors, in which order.
    pub question: Question<'a>,
    /// How they are shown.
    pub form: Form,
    /// So long silence is no end.
    pub silence: Duration,
}

impl EngineFlags {
    /// An engine is asked.
    pub fn is_given(&self) -> bool {
        self.engine.is_some()
    }

    /// Shows what it finds, or what it would be asked.
    ///
    /// # Errors
    /// When it cannot be asked, or refuses.
    pub fn find(&self, search: Search<'_>) -> Outcome {
        let engine = self.engine.expect("an engine is asked");
        let dialect = match engine {
            Engine::Trino => Dialect::Trino,
            Engine::Duckdb => Dialect::DuckDb,
        };
        let asked = search.question.asked(dialect).map_err(|error| Usage(error.to_string()))?;
        for test in &asked.undecided {
            let test = page::safe::printable(test);
            say(&format!("the engine cannot decide {test:?}: wirespool looks at its rows again"));
        }
        if self.explain {
            let mut out = stdout::buffered();
            writeln!(out, "{}", asked.statement)?;
            out.flush()?;
            return Ok(Verdict::Clean);
        }
        if engine == Engine::Duckdb {
            let text = "DuckDB is no server: give it what --explain prints (docs/archive.md)";
            return Err(Usage(text.to_owned()).into());
        }
        let server = Server(self.exchange(search.silence)?);
        if self.sync {
            for table in TABLES {
                let schema = query::sql_literal(&self.schema);
                let call = "CALL system.sync_partition_metadata";
                let statement = format!("{call}({schema}, '{table}', 'ADD')");
                server.run(&statement, &mut |_, _| Ok(Taken::More))?;
            }
        }
        show(&server, search, &asked)
    }

    fn exchange(&self, silence: Duration) -> anyhow::Result<Exchange> {
        let Some(url) = &self.url else {
            return Err(Usage("where is the engine? --url http://127.0.0.1:8080".to_owned()).into());
        };
        let origin = url.parse().map_err(|error: NoOrigin| of_remote(error.into()))?;
        let token_file = self.engine_token_file.clone();
        let trust = Trust {
            ca: self.engine_ca.clone(),
            certificate: None,
            // A token goes to nobody over a connection that others can read.
            token: token().filter(|_| token_file.is_none() && url.starts_with("https:")),
            token_file,
        };
        let stop = StopFlag::install()?;
        let is_stopped = Box::new(move || stop.is_set());
        let settings = Settings { trust, silence, program: PROGRAM, is_stopped };
        let headings = vec![
            ("x-trino-user", self.user.clone()),
            ("x-trino-source", PROGRAM.to_owned()),
            ("x-trino-catalog", self.catalog.clone()),
            ("x-trino-schema", self.schema.clone()),
        ];
        Exchange::new(origin, settings, headings).map_err(of_remote)
    }
}

/// A server of Trino.
struct Server(Exchange);

impl Server {
    fn run(
        &self,
        statement: &str,
        take: &mut dyn FnMut(&[String], Values) -> anyhow::Result<Taken>,
    ) -> anyhow::Result<()> {
        let ended = ::engine::run(statement, &mut |call| Ok(self.call(call)?), take);
        ended.map_err(|ended| match ended {
            Ended::Engine(error) => error.into(),
            Ended::Other(error) => match error.downcast::<Error>() {
                Ok(error) => of_remote(error),
                Err(error) => error,
            },
        })
    }

    fn call(&self, call: Call<'_>) -> Result<Vec<u8>, Error> {
        let sent = match call {
            Call::Begin(statement) => Sent::Post(statement),
            Call::Next(_) => Sent::Get,
            Call::Cancel(_) => Sent::Delete,
        };
        self.0.ask(call.path(), sent, PART_BYTES_MAX)
    }
}

/// The sessions, and then what is missing.
fn show(server: &Server, search: Search<'_>, asked: &Asked) -> Outcome {
    let Search { question: Question { query, sensors, .. }, mut form, .. } = search;
    let mut out = stdout::buffered();
    out.write_all(form.heading().as_bytes())?;
    let mut progress = Some(Progress::new("fleet find"));
    let (mut marks, mut names, mut count) = (Marks::default(), Vec::new(), 0_u64);
    server.run(&asked.statement, &mut |columns, values| {
        let (sensor, found) = ::engine::row(columns, values)?;
        let ids = core::slice::from_ref(&found.id);
        if !asked.undecided.is_empty() && !query.matches(&found.session, ids) {
            return Ok(Taken::More);
        }
        if asked.limit == Some(count) {
            return Ok(Taken::Enough);
        }
        if stdout::is_terminal() {
            progress.take().into_iter().for_each(Progress::finish);
        }
        count += 1;
        let number = number_of(&mut names, sensor);
        let first = marks.mark(number, &found);
        out.write_all(form.take(&names, number, (&found, first)).as_bytes())?;
        Ok(Taken::More)
    })?;
    progress.into_iter().for_each(Progress::finish);
    out.write_all(form.finish().as_bytes())?;
    out.flush()?;
    let mut missing = Vec::new();
    server.run(&Missing::statement(query, sensors), &mut |_, values| {
        missing.extend(::engine::missing(&values).map(|missing| missing.text));
        Ok(Taken::More)
    })?;
    let sessions = page::text::plural(count, "session");
    if !missing.is_empty() {
        say_lines(&format!("{sessions} of the archive, incomplete\n{}", missing.join("\n")));
    } else if stdout::is_terminal() {
        say(&format!("{sessions} of the archive, which knows of nothing that is missing"));
    } else if count == 0 {
        say("no session matches");
    }
    Ok(Verdict::clean_if(missing.is_empty()))
}

/// The number of a sensor: in the order in which they are seen.
fn number_of(names: &mut Vec<String>, sensor: String) -> usize {
    names.iter().position(|name| *name == sensor).unwrap_or_else(|| {
        names.push(sensor);
        names.len() - 1
    })
}
