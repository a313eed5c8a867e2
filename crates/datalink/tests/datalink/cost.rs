//! The formulas of the crate's page for the number of Acks and UpdateFCs, against counted ones.

use crate::pair::{Pair, write};
use tlplab_datalink::{
    AckLatency, ClassBuffer, Config, CreditBatch, Event, LinkLayer, ReceiveBuffers, UpdateFcLatency,
};
use tlplab_units::{Duration, Generation, LinkMode, Mps, Time, Width};

const TLPS: u32 = 5_000;

/// A saturated stream of writes of `payload` bytes from A to B, each released as it arrives.
fn saturate(config: &Config, payload: u32) -> Pair {
    let mut pair = Pair::up(config.clone(), config.clone());
    let (mut next, mut delivered) = (0, 0);
    while delivered < TLPS {
        while next < TLPS && pair.ends[0].admit(&write(payload)).is_ok() {
            pair.send(0, next, write(payload));
            next += 1;
        }
        assert!(pair.step(Time::NEVER));
        while let Some((side, event)) = pair.events.pop_front() {
            if let (1, Event::Deliver(_)) = (side, event) {
                delivered += 1;
                pair.release(1, write(payload));
            }
        }
    }
    pair
}

#[test]
fn acks_and_updates_follow_from_the_policies() {
    for generation in Generation::ALL.into_iter().filter(|generation| !generation.requires_flit_mode()) {
        for (lanes, mps, payload, header, data, parts) in [
            (1, 128, 128, 127, 2047, 2),
            (4, 256, 256, 64, 512, 8),
            (8, 256, 64, 101, 2047, 2),
            (16, 512, 512, 127, 100, 3),
            (8, 256, 64, 127, 40, 2),
        ] {
            let mut config = Config::new(generation, Width::new(lanes).unwrap(), Mps::new(mps).unwrap());
            config.mode = LinkMode::NonFlit;
            config.scaled_flow_control = false;
            let posted = ClassBuffer::finite(header, data);
            config.receive = ReceiveBuffers::vc0(posted, posted, posted);
            config.fc.batch = CreditBatch::Part(parts);
            config.fc.refresh = None;
            config.replay_timer = Some(Duration::from_us(100));
            let ack = [AckLatency::Specification, AckLatency::Fixed(Duration::from_ns(777))];
            let update = [UpdateFcLatency::Unlimited, UpdateFcLatency::Specification];
            for (latency, update) in ack.into_iter().flat_map(|ack| update.map(|update| (ack, update))) {
                (config.ack.latency, config.fc.latency) = (latency, update);
                let pair = saturate(&config, payload);
                // As long as credits do not run out, TLPs follow one another on the wire.
                let time = config.rate().time_of(u64::from(12 + payload + 8)) * u64::from(TLPS);
                assert_eq!(pair.now, Time::ZERO + time, "a gap");

                let each = config.rate().time_of(u64::from(12 + payload + 8)).as_fs();
                let per_ack = config.ack_latency().as_fs() / each + 1;
                let d = u32::from(write(payload).data_credits);
                let batch = |credits: u16, each: u32| (u32::from(credits) / (u32::from(parts) * each)).max(1);
                let unblock = (u32::from(data) - mps / 16) / d + 1;
                let per_update = batch(header, 1).min(batch(data, d)).min(unblock);
                let by_time =
                    config.update_fc_latency().map_or(u64::MAX, |latency| latency.as_fs() / each + 1);
                let per_update = u64::from(per_update).min(by_time);
                let counters = pair.ends[1].counters();
                let context = format!("{generation} x{lanes} {mps} {payload} {latency:?} {update:?}");
                let acks = u64::from(TLPS) / per_ack;
                assert!(
                    counters.acks_sent.abs_diff(acks) <= 1,
                    "{context}: {} Acks, not {acks}",
                    counters.acks_sent
                );
                let updates = u64::from(TLPS) / per_update;
                let sent = counters.update_fcs_sent;
                assert!(sent.abs_diff(updates) <= 1, "{context}: {sent} UpdateFCs, not {updates}");
            }
        }
    }
}
