//! Access control sends TLPs between peers by way of the root complex: without it they go straight.

use super::{By, Candidate, Figures};
use crate::experiment::Experiment;
use crate::result::LimitKind;
use tlplab_fabric::attribution::Cause;
use tlplab_fabric::config::{AcsControls, FabricConfig, LinkConfig};

pub(super) fn candidates(experiment: &Experiment, figures: &Figures<'_>) -> Option<Candidate> {
    let waits = figures.share_anywhere(&[Cause::Queueing, Cause::CreditWait]);
    Candidate::of_part(
        "access control between peers".to_owned(),
        LimitKind::Routing,
        waits,
        &experiment.fabric,
        |experiment: &mut Experiment| Some(&mut experiment.fabric),
        turn_off,
    )
}

fn turn_off(fabric: &mut FabricConfig, by: By) -> Option<String> {
    let mut redirects = false;
    for link in links(fabric) {
        let Some(acs) = &mut link.upper.acs else { continue };
        let redirect = AcsControls::REQUEST_REDIRECT | AcsControls::COMPLETION_REDIRECT;
        redirects |= acs.enabled.bits() & redirect.bits() != 0;
        acs.enabled = AcsControls::NONE;
    }
    (redirects && by != By::Tenth).then(|| "redirected → straight".to_owned())
}

fn links(fabric: &mut FabricConfig) -> impl Iterator<Item = &mut LinkConfig> {
    let switches = fabric.switches.iter_mut().map(|switch| &mut switch.uplink);
    let buses = fabric.buses.iter_mut().map(|bus| &mut bus.uplink);
    switches.chain(buses).chain(fabric.devices.iter_mut().map(|device| &mut device.link))
}
