//! The built-in devices and their drivers on an [`ideal`] driver: no link, fixed delays.

mod devices;
mod e1000e;
mod e1000e_driver;
mod ideal;
mod loads;
mod nettlp_card;
mod nic;
mod nvme;
mod simple_nic;
mod storage;
mod tlpdma;
