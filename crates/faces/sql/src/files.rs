//! Parquet files as the table `sessions`.

use std::path::Path;
use std::sync::Arc;

use datafusion::common::DataFusionError;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTableUrl};
use datafusion::prelude::SessionContext;

use crate::Error;
use crate::expected::TABLES;

/// A file, or all `*.parquet` of a folder and its folders; `key=value` folders are columns.
pub(crate) async fn register(context: &SessionContext, path: &Path) -> Result<(), Error> {
    let [sessions, ..] = TABLES;
    let name = path.to_string_lossy();
    let name = if path.extension().is_some_and(|extension| extension == "parquet") {
        name.into_owned()
    } else {
        format!("{}/", name.trim_end_matches('/'))
    };
    let url = ListingTableUrl::parse(&name)?;
    let format = Arc::new(ParquetFormat::default());
    let options = ListingOptions::new(format).with_file_extension(".parquet");
    let state = context.state();
    let nothing = |error: DataFusionError| match error.find_root() {
        DataFusionError::Plan(_) => DataFusionError::Execution("no Parquet file is there".into()),
        _ => error,
    };
    let keys = options.infer_partitions(&state, &url).await.map_err(nothing)?;
    let text = datafusion::arrow::datatypes::DataType::Utf8;
    let keys = keys.into_iter().map(|key| (key, text.clone())).collect();
    let options = options.with_table_partition_cols(keys);
    let schema = options.infer_schema(&state, &url).await.map_err(nothing)?;
    context.register_listing_table(sessions, name, options, Some(schema), None).await?;
    Ok(())
}
