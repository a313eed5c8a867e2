//! With all its mistakes the model gives the public pcie-model's numbers.

use tlplab_analytic::ethernet::{frames, packet, transferred};
use tlplab_analytic::*;
use tlplab_units::{Generation, Mps, Mrrs, Width};

fn public(generation: u8, lanes: u8, mps: u32, mrrs: u32) -> Connection {
    let link = Link::new(Generation::new(generation).unwrap(), Width::new(lanes).unwrap());
    let connection = Connection::new(link, Mps::new(mps).unwrap(), Mrrs::new(mrrs).unwrap());
    Connection { mistakes: Mistakes::PCIE_MODEL, ..connection }
}

fn nics() -> [Nic; 3] {
    NICS.map(|(name, text)| Nic::parse(name, text).unwrap())
}

/// The columns of nic_bw.dat for one NIC, Gb/s of packets.
fn nic_columns(nic: &Nic, connection: &Connection, bytes: u64) -> [f64; 3] {
    [Ways::Both, Ways::Transmit, Ways::Receive]
        .map(|ways| nic.packets(connection, ways, Span::new(0, bytes)) * bytes as f64 * 8.0 / 1e9)
}

/// Operations in the order of the columns.
const OPERATIONS: [Operation; 3] = [Operation::Write, Operation::Read, Operation::ReadWrite];

#[test]
fn every_generation_width_and_payload() {
    let text = include_str!("pcie-model/configurations.csv");
    let mut rows = 0;
    for line in text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())) {
        let cells: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
        let &[generation, lanes, mps, mrrs, rcb, by_rcb, address, ecrc, size] = &cells[..9] else { panic!() };
        let size = size as u64;
        let connection = Connection {
            rcb: rcb as u64,
            completions: if by_rcb == 1.0 { Completions::Rcb } else { Completions::Max },
            wide_addresses: address == 64.0,
            ecrc: ecrc == 1.0,
            ..public(generation as u8, lanes as u8, mps as u32, mrrs as u32)
        };
        let mut ours = vec![connection.capacity() * 8.0 / 1e9];
        let transfer = Span::new(0, size);
        ours.extend(OPERATIONS.map(|o| bandwidth(&connection, o, transfer).payload / 1e9));
        ours.extend(nics().iter().flat_map(|nic| nic_columns(nic, &connection, size)));
        assert_eq!(ours.len(), cells.len() - 9);
        for (ours, theirs) in ours.iter().zip(&cells[9..]) {
            assert!((ours / theirs - 1.0).abs() < 1e-8, "{line}: {ours} for {theirs}");
        }
        rows += 1;
    }
    assert_eq!(rows, 7 * 6 * 6);
}

/// A file of its output: one line of numbers for each size, as printed.
fn check(name: &str, text: &str, ours: impl Fn(u64) -> Vec<f64>) {
    let mut lines = 0;
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split_whitespace().collect();
        let size: u64 = cells[0].parse().unwrap();
        for (ours, printed) in ours(size).into_iter().zip(&cells[1..]) {
            let digits = printed.split_once('.').map_or(0, |(_, after)| after.len());
            let theirs: f64 = printed.parse().unwrap();
            // Half a digit for rounding, and a whole one where a number is cut off.
            let tolerance = if digits == 0 { 1.0 } else { 0.501 * 0.1f64.powi(digits as i32) };
            assert!((ours - theirs).abs() <= tolerance, "{name}, {size}: {ours} for {printed}");
        }
        lines += 1;
    }
    assert!(lines >= 30, "{name}: {lines} lines");
}

fn pcie_columns(connection: &Connection, size: u64) -> Vec<f64> {
    let rates = OPERATIONS.map(|operation| bandwidth(connection, operation, Span::new(0, size)));
    let mut columns: Vec<f64> = rates.iter().flat_map(|b| [b.payload / 1e9, b.transfers]).collect();
    // That program, unlike the other, gives Ethernet's rate right, except that it counts whole frames.
    let pps = frames(40e9, size, Mistakes::NONE);
    columns.extend([pps * size as f64 * 8.0 / 1e9, pps, 1e9 / pps]);
    columns
}

fn nic_bw(connection: &Connection, frame: u64) -> Vec<f64> {
    let bytes = packet(frame);
    let gigabits = |operation| bandwidth(connection, operation, Span::new(0, bytes)).payload / 1e9;
    let ethernet = transferred(40e9, frame, Mistakes::PCIE_MODEL) / 1e9;
    let mut columns = vec![gigabits(Operation::Write), gigabits(Operation::Read), ethernet];
    columns.extend(nics().iter().flat_map(|nic| nic_columns(nic, connection, bytes)));
    columns
}

#[test]
fn its_programs_output() {
    let default = public(3, 8, 256, 512);
    check("default", include_str!("pcie-model/pcie_bw.dat"), |size| pcie_columns(&default, size));
    let narrow = Connection { wide_addresses: false, ..default };
    check("addr32", include_str!("pcie-model/pcie_bw_addr32.dat"), |size| pcie_columns(&narrow, size));
    let slow = public(1, 16, 256, 512);
    check("gen1 x16", include_str!("pcie-model/pcie_bw_gen1_x16_mps256.dat"), |size| {
        pcie_columns(&slow, size)
    });
    check("NICs", include_str!("pcie-model/nic_bw.dat"), |size| nic_bw(&default, size));
}
