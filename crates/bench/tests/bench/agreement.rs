//! The closed form and the simulator share nothing but their inputs; on hosts where nothing varies they agree.

use tlplab_bench::{Case, ClosedForm, Interface, Machine, Setup, Simulator, Target, Test};

/// Latencies within a tick and 1 %; bandwidths within 3 %, of reads and writes in turn and of the NFP-6000, whose
/// reads wait for their buffer and hold up the writes between them, within 5.5 %: the closed form lets those writes go on, and knows nothing of
/// bursts. On a measured host, where the lines of a read come one by one, latencies are within 6 % and bandwidths within 8 %.
#[test]
fn closed_form_and_simulator_agree() {
    for (host, device, link) in [
        ("ideal", "ideal", "gen3 x8"),
        ("server", "ideal", "gen4 x4"),
        ("server", "netfpga", "gen3 x8"),
        ("server", "nfp6000", "gen3 x8"),
        ("xeon-e5-2620v3", "nfp6000", "gen3 x8"),
    ] {
        let setup = Setup { host: host.into(), device: device.into(), link: link.into(), ..Setup::default() };
        let machine = Machine::new(&setup, &|path| Err(path.into())).unwrap();
        let targets: [&dyn Target; 2] = [&ClosedForm::new(machine.clone()), &Simulator::new(machine)];
        let by_lines = host.starts_with("xeon");
        for test in [Test::LatRd, Test::LatWrrd, Test::BwRd, Test::BwWr, Test::BwRdwr] {
            for size in [8, 64, 128, 256, 300, 512, 1024, 2048] {
                let interface =
                    if test == Test::LatRd && size <= 64 { Interface::Command } else { Interface::Dma };
                let count = test.is_latency().then_some(500);
                let case = Case { count, interface, ..Case::new(test, size) };
                let [form, simulated] = targets.map(|target| target.run(&case, &mut |_| true).unwrap());
                let place = format!("{test:?} {size} on {host} {device}");
                if test.is_latency() {
                    let [form, simulated] = [form, simulated].map(|m| m.latency.mean().unwrap());
                    let within = if by_lines { 0.06 } else { 0.01 };
                    assert!(
                        (form - simulated).abs() < 1.0 + within * simulated,
                        "{place}: {form} {simulated}"
                    );
                } else {
                    let [form, simulated] = [form, simulated].map(|m| m.bandwidth());
                    let within = if by_lines {
                        0.08
                    } else if test == Test::BwRdwr || device == "nfp6000" {
                        0.055
                    } else {
                        0.03
                    };
                    assert!((form / simulated - 1.0).abs() < within, "{place}: {form} {simulated}");
                }
            }
        }
    }
}
