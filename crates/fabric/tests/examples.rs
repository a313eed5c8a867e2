//! The examples are programs that run.

#[path = "../examples/own_device.rs"]
mod own_device;

#[test]
fn own_device_runs() {
    own_device::main();
}
