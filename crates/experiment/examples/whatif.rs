//! `whatif FILE [key=value …]`: what limits an experiment, and what it gains from twice as much of each resource, a line each.
#![allow(clippy::disallowed_methods, reason = "an example reads its file")]

use std::sync::Arc;
use tlplab_experiment::run::{Inputs, Run};
use tlplab_experiment::whatif::{Extent, Judge, Study};
use tlplab_experiment::{Experiment, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: whatif FILE [key=value …]")?;
    let options = Options { set: arguments.collect(), ..Options::default() };
    let read = |path: &str| std::fs::read_to_string(path).map_err(|error| error.to_string());
    let experiment = Experiment::parse_with(&read, &path, &options)?;
    let mut run = Run::new(experiment, Inputs::default())?;
    run.finish()?;
    let document = run.document();
    println!("figures: {}", document.verdict.sentence);
    let study = Study::new(&mut run, document, Default::default(), Extent::Bounded)?;
    let mut judge = Judge::new(Arc::new(study));
    while let Some(task) = judge.next_task() {
        judge.tell(task.id, task.run());
    }
    let verdict = judge.verdict();
    println!("runs:    {}", verdict.sentence);
    for line in &verdict.limit.evidence {
        println!("  * {line}");
    }
    if let Some(next) = &verdict.next {
        println!("  > {}", next.text);
    }
    println!("{:?}", verdict.tried);
    Ok(())
}
