//! Points that somebody chooses, and what is around one.

use crate::{Bench, run};
use tlplab_study::Sweep;
use tlplab_study::axis::Span;
use tlplab_study::expression::Value;

const AXES: &str = r#"
[[axis]]
key = "device.ssd.link"
name = "link"
values = ["gen3 x4", "gen3 x8", "gen9 x1"]
[[axis]]
key = "load.ssd.outstanding"
name = "outstanding"
from = 1
to = 4
steps = 4
[[filter]]
name = "few"
keep = "outstanding <= 3"
[[filter]]
name = "wide or few"
keep = "link == 'gen3 x8' or outstanding == 1"
"#;

#[test]
fn chosen_points_follow_their_steps_and_pass_the_filters() {
    let bench = Bench::new();
    let study = bench.study(AXES);
    let points = study.choose(&[vec![1, 2], vec![0, 3], vec![0, 1], vec![0, 0]]).unwrap();
    let kept: Vec<_> = points.kept.iter().map(|point| (point.number, point.steps.clone())).collect();
    assert_eq!(kept, [(0, vec![1, 2]), (3, vec![0, 0])], "numbers are places in the list");
    assert_eq!(points.left_out, [("few".to_owned(), 1), ("wide or few".to_owned(), 1)]);
    let set = study.overrides(&points.kept[0]);
    assert_eq!(set, ["device.ssd.link=\"gen3 x8\"", "load.ssd.outstanding=3"]);
    for wrong in [vec![3, 0], vec![0, 4], vec![0], vec![0, 0, 0]] {
        assert!(study.choose(std::slice::from_ref(&wrong)).is_err(), "{wrong:?}");
    }
}

#[test]
fn around_a_base_others_set_nothing_or_stay() {
    let bench = Bench::new();
    let study = bench.study(AXES);
    let base = study.clone().around(None, &[]);
    assert_eq!(base.points().kept.len(), 1);
    assert!(base.overrides(&base.points().kept[0]).is_empty() && base.filters.is_empty());
    let alone = study.clone().around(Some(1), &[]);
    assert_eq!(alone.filters.len(), 1, "the other filter needs what is not set");
    let sets: Vec<_> = alone.points().kept.iter().map(|point| alone.overrides(point)).collect();
    assert_eq!(sets, [1, 2, 3].map(|n| vec![format!("load.ssd.outstanding={n}")]));
    let beside = study.around(Some(1), &[(0, 1)]);
    assert_eq!((beside.filters.len(), beside.points().kept.len()), (2, 3));
    let link = Value::Text("gen3 x8".into());
    assert!(beside.points().kept.iter().all(|point| beside.values(point)[0] == link));
}

#[test]
fn a_hypercube_opens_to_the_axes_of_its_keys() {
    let bench = Bench::new();
    let study = bench.study(
        "[[axis]]\nlatin = 5\nof = [{ key = \"device.ssd.link\", values = [\"gen3 x4\", \"gen3 x8\"] }, { key = \"load.ssd.size\", from = \"1KiB\", to = \"16KiB\", scale = \"log\" }, { key = \"load.ssd.outstanding\", from = 1, to = 3 }]",
    );
    assert_eq!(study.points().kept.len(), 5);
    let opened = study.opened();
    let spans: Vec<_> = opened.axes.iter().map(|axis| (axis.span.clone(), axis.steps.len())).collect();
    assert_eq!(
        spans,
        [(Span::Values, 2), (Span::Range, 5), (Span::Range, 3)],
        "whole numbers have no more steps"
    );
    let sizes: Vec<_> = opened.axes[1].columns[0].values.iter().filter_map(Value::number).collect();
    assert_eq!(sizes, [1024.0, 2048.0, 4096.0, 8192.0, 16384.0]);
    assert_eq!(opened.choose(&[vec![1, 4, 0]]).unwrap().kept.len(), 1);
}

#[test]
fn all_is_known_when_each_run_is() {
    let bench = Bench::new();
    let mut sweep = bench.sweep(&format!("{AXES}[repeats]\nseeds = 2\n"));
    let mut always = || true;
    assert!(!sweep.knows_all(&mut always));
    let all = sweep.points.clone();
    sweep.points.kept.pop();
    sweep.run(2, &mut |_| true).unwrap();
    assert!(sweep.knows_all(&mut always), "what is refused is known, too");
    assert!(!sweep.knows_all(&mut || false), "it was interrupted");
    sweep.points = all;
    let refused = sweep.points.kept.last().is_some_and(|point| point.steps[0] == 2);
    assert_eq!(sweep.knows_all(&mut always), refused);
}

/// Chosen points are numbered by their places in a list; stored results are found by their steps.
#[test]
fn chosen_points_find_stored_results_by_their_steps() {
    let bench = Bench::new();
    let text = "[[axis]]\nkey = \"device.ssd.link\"\nvalues = [\"gen3 x1\", \"gen3 x2\", \"gen3 x4\"]\n\
        [[axis]]\nkey = \"load.ssd.size\"\nvalues = [\"512B\", \"4KiB\"]";
    let all = bench.run(text).rows;
    for steps in [&[[2, 1], [0, 0], [1, 1]][..], &[[1, 0], [2, 0]], &[[0, 1]]] {
        let study = bench.study(text);
        let points = study.choose(&steps.iter().map(|step| step.to_vec()).collect::<Vec<_>>()).unwrap();
        let outcome = run(&Sweep { points, ..bench.sweep_of(study) }, 1);
        assert_eq!(outcome.progress.known, steps.len());
        for (row, [link, size]) in outcome.rows.iter().zip(steps) {
            assert_eq!(row.came, all[2 * link + size].came);
        }
    }
}
