//! What a read costs the two ends of NetTLP, without a network: one end point reads, another answers from memory. Prints nothing of its
//! own clock, since it has none; measure it from outside.
//!
//! ```console
//! $ cargo build --release -p tlplab-nettlp --example round_trip
//! $ time target/release/examples/round_trip 1000000 256
//! $ valgrind --tool=callgrind --callgrind-out-file=/dev/null target/release/examples/round_trip 20000 256
//! ```

use std::net::{Ipv4Addr, SocketAddrV4};
use std::process::ExitCode;
use tlplab_nettlp::endpoint::{Endpoint, EndpointConfig, Event, Window};
use tlplab_nettlp::{Datagram, Engine, MAX_DATAGRAM};
use tlplab_transaction::Payload;
use tlplab_units::{Bdf, Duration, Time};

const REQUESTER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
const COMPLETER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// Reads under way at once.
const OUTSTANDING: u64 = 64;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<u64>());
    let (Some(Ok(reads)), Some(Ok(bytes)), None) = (numbers.next(), numbers.next(), numbers.next()) else {
        eprintln!("usage: round_trip READS BYTES, with 1 to 512 bytes");
        return ExitCode::from(2);
    };
    let mut requester = Endpoint::<u64>::new(EndpointConfig::new(COMPLETER, Bdf(0x1B00)));
    let windows = vec![Window::EVERYTHING];
    let mut completer =
        Endpoint::<u64>::new(EndpointConfig { windows, ..EndpointConfig::new(REQUESTER, Bdf(0)) });
    let memory: Vec<u8> = (0..bytes).map(|at| at as u8).collect();
    let (mut begun, mut done, mut now) = (0, 0, Time::ZERO);
    while done < reads {
        now += Duration::from_ns(100);
        while begun < reads && begun - done < OUTSTANDING {
            requester.read(now, begun, (begun % 4096) << 12, bytes).expect("an address far below the end");
            begun += 1;
        }
        pass(now, &mut requester, REQUESTER, &mut completer);
        while let Some(event) = completer.poll_event() {
            if let Event::HostRead(read) = event {
                completer.answer(read.token, Ok(Payload::from(&memory[..]))).expect("all that was asked for");
            }
        }
        pass(now, &mut completer, COMPLETER, &mut requester);
        while let Some(event) = requester.poll_event() {
            if let Event::ReadDone { result, .. } = event {
                assert_eq!(result.expect("nothing is lost").bytes(), Some(&memory[..]));
                done += 1;
            }
        }
    }
    ExitCode::SUCCESS
}

/// Passes on all that one end has to send, and swaps the port class as an adapter does.
fn pass(now: Time, sender: &mut Endpoint<u64>, address: Ipv4Addr, receiver: &mut Endpoint<u64>) {
    let mut buffer = [0; MAX_DATAGRAM];
    while let Some(out) = sender.poll_transmit(now, &mut buffer) {
        // The tag of a request, or of the request that a completion answers.
        let port = match out.from_port >> 12 {
            3 => 0x4000 | u16::from(buffer[6 + 6] & 15),
            _ => 0x3000 | u16::from(buffer[6 + 10]),
        };
        let from = SocketAddrV4::new(address, out.from_port);
        receiver.handle_datagram(now, Datagram { from, port, payload: &buffer[..out.len] });
    }
}
