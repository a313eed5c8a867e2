//! Turns a capture into a trace table: `convert_capture CAPTURE [TABLE] [SOURCE]`.
//!
//! Takes the direction with the most memory requests, writes its requests to TABLE (`-`: standard output) and says on standard error
//! what the capture holds. The tables in `experiments/traces` were made with it.

use std::process::ExitCode;
use tlplab_capture::{self as capture, table};
use tlplab_trace::output;

fn main() -> ExitCode {
    match convert() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn convert() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: convert_capture CAPTURE [TABLE] [SOURCE]")?;
    let capture = capture::read_file(&path)?;
    eprintln!("{path}: {} frames, {} records", capture.frames, capture.records.len());
    for problem in &capture.problems {
        eprintln!("  {problem}");
    }
    let direction = capture::busiest_direction(&capture).ok_or("there are no memory requests")?;
    let requests = capture::requests(&capture, Some(direction));
    eprintln!("  {} requests, {}", requests.len(), capture.directions[usize::from(direction)]);
    let statistics = capture::statistics(&capture);
    eprintln!("  {statistics:?}");
    if let Some(target) = arguments.next() {
        let source = arguments.next().or(capture.source).unwrap_or_default();
        let mut bytes = Vec::new();
        table::write(&mut bytes, &source, &requests)?;
        output::write(target, &bytes)?;
    }
    Ok(())
}
