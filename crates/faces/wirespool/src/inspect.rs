//! `wirespool inspect`.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::failure::{Outcome, Verdict};
use crate::members::VolumeFlags;
use crate::output_file;
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
  wirespool inspect /dev/sdb1 --map-svg ring.svg")]
pub(crate) struct Flags {
    #[command(flatten)]
    of: VolumeFlags,
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
}

fn write_drawing(file: &Path, drawing: &str, flags: &Flags) -> anyhow::Result<()> {
    Ok(output_file::create(file, flags.force)?.finish_with(drawing.as_bytes())?)
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let VolumeFlags { volume, members, json } = &flags.of;
    let report = upkeep::inspect(volume, members)?;
    let draw = |grid| upkeep::map(volume, members, grid);
    let map = flags.map.then(|| draw(volume_view::map_grid(stdout::width()))).transpose()?;
    if let Some(file) = &flags.map_svg {
        let drawing = draw(volume_view::map_svg_grid())?;
        write_drawing(
            file,
            &volume_view::map_svg(&drawing, &page::safe::path_value(volume)),
            flags,
        )?;
    }
    let text = if *json {
        volume_view::inspection_json(&report, map.as_ref())
    } else {
        let text = volume_view::inspection(&report, stdout::width());
        text + &map.as_ref().map(volume_view::map).unwrap_or_default()
    };
    stdout::print(&text)?;
    Ok(Verdict::Clean)
}
