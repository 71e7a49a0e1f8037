//! `wirespool inspect`.

use std::path::{Path, PathBuf};

use ::remote::{JSON, PLAIN, There};
use clap::Args;

use crate::failure::{Outcome, Verdict};
use crate::output_file;
use crate::remote::{Asked, Place, RemoteFlags, not_named, of_remote, refused, volume_or_word};
use crate::stdout;

/// Show what a volume holds, without writing to it.
///
/// Shape, time range, recordings by name with what the ring has left of them, index, how far back
/// the ring reaches, and whether the last recorder stopped in order. Takes no lock and never
/// writes, so it may run beside a recorder.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool inspect /data/spool
  wirespool inspect /dev/sdb1 --json | jq .recordings
  wirespool inspect /dev/sdb1 --map
  wirespool inspect /dev/sdb1 --map-svg ring.svg
  wirespool --remote https://sensor:8420 inspect spool")]
pub(crate) struct Flags {
    /// The volume: any of its members; with --remote the name of one
    #[arg(required_unless_present = "remote", value_parser = volume_or_word())]
    volume: Option<PathBuf>,
    /// Another member, or a folder of such, where it is not found by itself; may be given several
    /// times
    #[arg(long = "member", value_name = "PATH", conflicts_with = "remote")]
    members: Vec<PathBuf>,
    /// Report as JSON
    #[arg(long)]
    json: bool,
    /// Draw the ring over the surface, from outside to inside: what lies where, and how old it is;
    /// its cells with --json
    #[arg(long)]
    map: bool,
    /// Draw it into an SVG file
    #[arg(long, value_name = "FILE")]
    map_svg: Option<PathBuf>,
    /// Replace the file of --map-svg
    #[arg(long, requires = "map_svg")]
    force: bool,
    #[command(flatten)]
    remote: RemoteFlags,
}

fn write_drawing(file: &Path, drawing: &str, flags: &Flags) -> anyhow::Result<()> {
    Ok(output_file::create(file, flags.force)?.finish_with(drawing.as_bytes())?)
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    if flags.remote.is_given() && flags.map_svg.is_some() {
        return Err(refused("--map-svg").into());
    }
    let Asked { place, words } = flags.remote.asked(flags.volume.as_deref(), &[])?;
    let text = match place {
        Place::Here(volume) => inspect(flags, &volume)?,
        Place::There(there) => there_inspected(flags, *there, &words)?,
    };
    stdout::print(&text)?;
    Ok(Verdict::Clean)
}

fn inspect(flags: &Flags, volume: &Path) -> anyhow::Result<String> {
    let report = upkeep::inspect(volume, &flags.members)?;
    let draw = |grid| upkeep::map(volume, &flags.members, grid);
    let map = flags.map.then(|| draw(volume_view::map_grid(stdout::width()))).transpose()?;
    if let Some(file) = &flags.map_svg {
        let drawing = draw(volume_view::map_svg_grid())?;
        let name = page::safe::path_value(volume);
        write_drawing(file, &volume_view::map_svg(&drawing, &name), flags)?;
    }
    if flags.json {
        return Ok(volume_view::inspection_json(&report, map.as_ref()));
    }
    let text = volume_view::inspection(&report, stdout::width());
    Ok(text + &map.as_ref().map(volume_view::map).unwrap_or_default())
}

/// What a service shows of its volume.
fn there_inspected(flags: &Flags, there: There, words: &[String]) -> anyhow::Result<String> {
    let there = there.named_by_all(words).map_err(not_named)?;
    let width = stdout::width().map(|width| ("width", width.max(1).to_string()));
    let map = flags.map.then(|| ("map", "true".to_owned()));
    let parameters: Vec<_> = map.into_iter().chain(width).collect();
    let media_type = if flags.json { JSON } else { PLAIN };
    there.text("/api/v1/inspection", &parameters, media_type).map_err(of_remote)
}
