//! The small corpus as a folder.

use std::fs;
use std::io::Result;
use std::path::Path;

use crate::{container, damaged, scenes, tables};

/// Writes captures and tables.
pub(crate) fn write(folder: &Path) -> Result<()> {
    let scenes = scenes::all();
    for scene in &scenes {
        let path = folder.join("pcap").join(scene.file);
        fs::create_dir_all(path.parent().expect("it is below pcap"))?;
        fs::write(path, container::bytes_of(scene))?;
    }
    let tables_folder = folder.join("ref");
    fs::create_dir_all(&tables_folder)?;
    for table in tables::all(&scenes) {
        fs::write(tables_folder.join(table.file), table.text())?;
    }
    let derived = folder.join("derived");
    fs::create_dir_all(&derived)?;
    let mut rows = vec!["file\tpackets_expected\tdamaged_at".to_owned()];
    for damaged in damaged::all() {
        let at = damaged.from_byte.map(|at| at.to_string()).unwrap_or_default();
        rows.push(format!("{}\t{}\t{at}", damaged.file, damaged.packets));
        fs::write(derived.join(damaged.file), damaged.bytes)?;
    }
    fs::write(derived.join("DERIVED.tsv"), rows.join("\n") + "\n")
}
