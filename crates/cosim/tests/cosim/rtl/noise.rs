//! A core that sends what comes to its mind: the run fails with words, or goes on; it never panics.

use super::flow;
use super::script::{Script, copy};
use tlplab_cfgspace::MsiX;
use tlplab_device::{BarSpec, Identity, Random, Room, TlpDevice, TlpIdentity, TlpOutput, TlpRegisters};
use tlplab_fabric::Builder;
use tlplab_fabric::config::{DeviceConfig, FabricConfig, LinkConfig};
use tlplab_units::{Bdf, Duration, Generation, Mps, Tag, Time, Width};
use tlplab_wire::tlp::{CompletionStatus, Repr, TransactionId};

struct Noise {
    random: Random,
    registers: TlpRegisters,
    /// Requests that it was given, as they are on the wire.
    requests: Vec<Vec<u8>>,
    /// TLPs that it holds, by class.
    held: [u32; 3],
    /// One TLP in so many is damaged.
    damage: u64,
}

impl Noise {
    fn tlp(&mut self) -> Vec<u8> {
        let id = TransactionId::new(self.registers.id, Tag::from(self.random.below(32) as u8));
        let (address, bytes) = (self.random.below(1 << 22), 1 + self.random.below(300) as u32);
        let asked = self.requests.pop();
        let repr = match (self.random.below(3), asked) {
            (0, _) => Repr::mem_read(id, address, bytes),
            (1, _) | (_, None) => Repr::mem_write(id, address, bytes),
            (_, Some(request)) => {
                let requester = Bdf(u16::from_be_bytes([request[4], request[5]]));
                let asked = TransactionId::new(requester, Tag::from(request[6]));
                match self.random.below(3) {
                    0 => Repr::completion(id.requester, asked, CompletionStatus::CompleterAbort, 4, 0),
                    _ => Repr::completion_with_data(id.requester, asked, bytes, 0, bytes.min(4)),
                }
            }
        };
        let Ok(repr) = repr else { return Vec::new() };
        let mut tlp = vec![0; repr.wire_bytes() as usize];
        let payload = vec![0x33; repr.payload_bytes() as usize];
        repr.emit(&mut tlp, &payload).expect("it fits");
        if self.random.below(self.damage) == 0 {
            for _ in 0..1 + self.random.below(4) {
                let bit = self.random.below(8 * tlp.len().min(20) as u64) as usize;
                tlp[bit / 8] ^= 1 << (bit % 8);
            }
            tlp.truncate(1 + self.random.below(2 * tlp.len() as u64) as usize);
        }
        tlp
    }
}

impl TlpDevice for Noise {
    fn identity(&self) -> TlpIdentity {
        let function =
            Identity { bars: vec![BarSpec::registers(0, 4096)], ..Identity::new(0x71AB, 2, 0xFF_0000) };
        let msix = Some(MsiX { vectors: 1, table: (0, 0x800), pending: (0, 0xC00) });
        TlpIdentity {
            function,
            intx_pin: 1,
            msix,
            max_payload: Mps::ALL[1],
            extended_tags: true,
            function_level_reset: true,
        }
    }

    fn configure(&mut self, registers: &TlpRegisters, _: bool) {
        self.registers = *registers;
    }

    fn receive(&mut self, tlp: &[u8], _: Option<u8>) -> bool {
        let class = match tlp[0] & 0x5F {
            0x40 => 0,
            0x0A | 0x4A => 2,
            _ => 1,
        };
        self.held[class] += 1;
        if class == 1 {
            self.requests.push(tlp.to_vec());
        }
        true
    }

    fn run(&mut self, until: Time, _: Room, output: &mut TlpOutput) -> Result<(), String> {
        let time = output.time + Duration::from_ns(1 + self.random.below(200));
        *output = TlpOutput { time: time.min(until), ..TlpOutput::default() };
        if time < until && self.registers.bus_master {
            output.taken = std::mem::take(&mut self.held);
            output.intx = self.random.below(2) == 0;
            output.tlp = self.tlp();
        }
        Ok(())
    }
}

#[test]
fn noise_never_panics() {
    let (mut failed, mut went_on) = (0, 0);
    for seed in 0..400 {
        let link = LinkConfig::new("host.rp0", Generation::Gen1, Width::new(8).expect("a width"));
        let mut config = FabricConfig { seed, ..FabricConfig::new() };
        config.devices.push(DeviceConfig::new("card", link));
        config.host.completion_timeout = Duration::from_us(20);
        let (script, _) =
            Script::new((0..20).flat_map(|n| copy(n, n, 4)).chain([super::script::Step::Read(0, 8)]));
        let mut builder = Builder::new(config);
        let (random, registers) = (Random::keyed(seed, "card", "noise"), TlpRegisters::default());
        let noise = Noise {
            random,
            registers,
            requests: Vec::new(),
            held: [0; 3],
            damage: if seed % 2 == 0 { 20 } else { u64::MAX },
        };
        builder.tlp_device("card", Box::new(noise)).flows([flow("read"), flow("write")]);
        builder.program(script).flows([flow("mmio")]);
        let mut fabric = builder.build().expect("a fabric");
        while fabric.run_events(10_000, Time::ZERO + Duration::from_us(60)) {}
        match fabric.fault() {
            Some(fault) => {
                assert!(fault.starts_with("card: "), "{fault}");
                failed += 1;
            }
            None => went_on += 1,
        }
    }
    assert!(failed > 20 && went_on > 0, "{failed} runs failed, {went_on} went on");
}
