//! The identification of the controller and its namespaces (NVMe 1.4 §5.15).

use super::config::NvmeConfig;
use super::features::WARM;
use super::logs::{ERROR_ENTRIES, EVENT_REQUESTS};
use super::regs::VERSION;
use super::status::Status;
use tlplab_cfgspace::VENDOR_ID;

/// Bytes of what Identify returns.
const BYTES: usize = 4096;

/// The command is supported.
const CSUPP: u32 = 1 << 0;
/// It changes logical blocks.
const LBCC: u32 = 1 << 1;
/// It changes what a namespace can.
const NCC: u32 = 1 << 2;
/// No other command for the namespace may be under way.
const ALONE: u32 = 1 << 16;

/// Admin commands and their effects.
pub(super) const SUPPORTED_ADMIN: &[(u8, u32)] = &[
    (admin::DELETE_SUBMISSION, CSUPP),
    (admin::CREATE_SUBMISSION, CSUPP),
    (admin::GET_LOG_PAGE, CSUPP),
    (admin::DELETE_COMPLETION, CSUPP),
    (admin::CREATE_COMPLETION, CSUPP),
    (admin::IDENTIFY, CSUPP),
    (admin::ABORT, CSUPP),
    (admin::SET_FEATURES, CSUPP),
    (admin::GET_FEATURES, CSUPP),
    (admin::EVENT_REQUEST, CSUPP),
    (admin::FORMAT, CSUPP | LBCC | NCC | ALONE),
];
/// I/O commands and their effects.
pub(super) const SUPPORTED_IO: &[(u8, u32)] = &[
    (nvm::FLUSH, CSUPP),
    (nvm::WRITE, CSUPP | LBCC),
    (nvm::READ, CSUPP),
    (nvm::COMPARE, CSUPP),
    (nvm::WRITE_ZEROES, CSUPP | LBCC),
    (nvm::DATASET_MANAGEMENT, CSUPP | LBCC),
    (nvm::VERIFY, CSUPP),
];

/// Opcodes of admin commands.
pub(super) mod admin {
    pub(in super::super) const DELETE_SUBMISSION: u8 = 0x00;
    pub(in super::super) const CREATE_SUBMISSION: u8 = 0x01;
    pub(in super::super) const GET_LOG_PAGE: u8 = 0x02;
    pub(in super::super) const DELETE_COMPLETION: u8 = 0x04;
    pub(in super::super) const CREATE_COMPLETION: u8 = 0x05;
    pub(in super::super) const IDENTIFY: u8 = 0x06;
    pub(in super::super) const ABORT: u8 = 0x08;
    pub(in super::super) const SET_FEATURES: u8 = 0x09;
    pub(in super::super) const GET_FEATURES: u8 = 0x0A;
    pub(in super::super) const EVENT_REQUEST: u8 = 0x0C;
    pub(in super::super) const FORMAT: u8 = 0x80;
}

/// Opcodes of the NVM command set.
pub(super) mod nvm {
    pub(in super::super) const FLUSH: u8 = 0x00;
    pub(in super::super) const WRITE: u8 = 0x01;
    pub(in super::super) const READ: u8 = 0x02;
    pub(in super::super) const COMPARE: u8 = 0x05;
    pub(in super::super) const WRITE_ZEROES: u8 = 0x08;
    pub(in super::super) const DATASET_MANAGEMENT: u8 = 0x09;
    pub(in super::super) const VERIFY: u8 = 0x0C;
}

/// A data structure that is filled field by field.
#[derive(Clone)]
pub(super) struct Page {
    pub(super) bytes: Vec<u8>,
}

impl Page {
    pub(super) fn new(bytes: usize) -> Self {
        Self { bytes: vec![0; bytes] }
    }
    pub(super) fn put(&mut self, at: usize, field: &[u8]) {
        self.bytes[at..at + field.len()].copy_from_slice(field);
    }
    /// Text, filled up with spaces.
    pub(super) fn text(&mut self, at: usize, bytes: usize, text: &str) {
        self.bytes[at..at + bytes].fill(b' ');
        self.put(at, text.as_bytes());
    }
}

/// The size of a namespace now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) bytes: u64,
    pub(super) block: u64,
}

/// The data structures of Identify.
pub(super) struct Identify<'a> {
    pub(super) config: &'a NvmeConfig,
    pub(super) sizes: Vec<Size>,
}

impl Identify<'_> {
    /// The data structure `cns`, of `namespace`, for the command set `csi`.
    pub(super) fn data(&self, cns: u8, namespace: u32, csi: u8) -> Result<Vec<u8>, Status> {
        match cns {
            0x00 => self.namespace(self.size(namespace)?),
            0x01 => Ok(self.controller()),
            0x02 => self.active(namespace),
            0x03 => self.descriptors(namespace),
            // Those of NVMe 2.0 that a driver asks for whatever the version, of the NVM command set.
            0x05 if csi == 0 => self.size(namespace).map(|_| vec![0; BYTES]),
            0x06 if csi == 0 => Ok(vec![0; BYTES]),
            0x07 if csi == 0 => self.active(namespace),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    fn size(&self, namespace: u32) -> Result<Size, Status> {
        let index = (namespace as usize).checked_sub(1).ok_or(Status::INVALID_NAMESPACE)?;
        self.sizes.get(index).copied().ok_or(Status::INVALID_NAMESPACE)
    }

    fn controller(&self) -> Vec<u8> {
        let config = self.config;
        let mut page = Page::new(BYTES);
        page.put(0, &VENDOR_ID.to_le_bytes());
        page.put(2, &VENDOR_ID.to_le_bytes());
        page.text(4, 20, &config.serial);
        page.text(24, 40, &config.model);
        page.text(64, 8, &config.firmware);
        page.put(72, &[super::features::BURST as u8]);
        page.put(77, &[(config.mdts / 4096).trailing_zeros() as u8]);
        page.put(80, &VERSION.to_le_bytes());
        page.put(92, &(1u32 << 8).to_le_bytes()); // OAES: namespace attribute notices
        page.put(96, &1u32.to_le_bytes()); // CTRATT: host identifiers of 128 bits
        page.put(111, &[1]); // an I/O controller
        page.put(256, &(1u16 << 1).to_le_bytes()); // OACS: Format NVM
        page.put(258, &[3, EVENT_REQUESTS as u8 - 1]); // abort commands and event requests at once, less 1
        page.put(260, &[1 << 1 | 1]); // FRMW: one slot, read-only
        page.put(261, &[1 << 1 | 1 << 2, ERROR_ENTRIES as u8 - 1]); // LPA: commands' effects, long pages; ELPE
        page.put(266, &WARM.to_le_bytes());
        page.put(268, &(WARM + 10).to_le_bytes());
        let total: u64 = self.sizes.iter().map(|size| size.bytes).sum();
        page.put(280, &total.to_le_bytes());
        page.put(512, &[0x66, 0x44]);
        page.put(516, &(self.sizes.len() as u32).to_le_bytes());
        // ONCS: Compare, Dataset Management, Write Zeroes, selectable features, Timestamp, Verify.
        page.put(520, &(1u16 << 0 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 6 | 1 << 7).to_le_bytes());
        // VWC: a cache, and that Flush takes the identifier of all namespaces.
        page.put(525, &[u8::from(config.cache > 0) | 3 << 1]);
        page.put(536, &1u32.to_le_bytes()); // SGLs of any alignment
        let name = format!("nqn.2014-08.org.nvmexpress:uuid:{}", text_of(self.uuid(0)));
        page.put(768, name.as_bytes());
        page.bytes
    }

    fn namespace(&self, size: Size) -> Result<Vec<u8>, Status> {
        let mut page = Page::new(BYTES);
        for at in [0, 8, 16] {
            page.put(at, &(size.bytes / size.block).to_le_bytes());
        }
        page.put(25, &[1, u8::from(size.block == 4096)]); // two formats, and the one in use
        page.put(33, &[1 | 1 << 3]); // DLFEAT: deallocated blocks are zero; Write Zeroes deallocates
        page.put(48, &size.bytes.to_le_bytes());
        page.put(130, &[9]);
        page.put(134, &[12]);
        Ok(page.bytes)
    }

    /// The namespaces after `after`, in order.
    fn active(&self, after: u32) -> Result<Vec<u8>, Status> {
        if after >= u32::MAX - 1 {
            return Err(Status::INVALID_NAMESPACE);
        }
        let mut page = Page::new(BYTES);
        let ids = (1..=self.sizes.len() as u32).filter(|id| *id > after);
        for (place, id) in ids.take(BYTES / 4).enumerate() {
            page.put(4 * place, &id.to_le_bytes());
        }
        Ok(page.bytes)
    }

    /// The identifiers of the namespace: a UUID, and its command set.
    fn descriptors(&self, namespace: u32) -> Result<Vec<u8>, Status> {
        self.size(namespace)?;
        let mut page = Page::new(BYTES);
        page.put(0, &[3, 16]);
        page.put(4, &self.uuid(namespace));
        page.put(20, &[4, 1]);
        Ok(page.bytes)
    }

    /// A name that follows from the serial number: two rounds of FNV-1a in the form of a UUID of version 8 (RFC 9562 §5.8).
    fn uuid(&self, namespace: u32) -> [u8; 16] {
        let mut name = [0; 16];
        let mut hash = 0xCBF2_9CE4_8422_2325u64;
        for half in name.chunks_exact_mut(8) {
            for byte in self.config.serial.bytes().chain(namespace.to_le_bytes()) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
            }
            half.copy_from_slice(&hash.to_be_bytes());
        }
        name[6] = name[6] & 0x0F | 0x80;
        name[8] = name[8] & 0x3F | 0x80;
        name
    }
}

fn text_of(uuid: [u8; 16]) -> String {
    let hex = |range: std::ops::Range<usize>| -> String {
        uuid[range].iter().map(|byte| format!("{byte:02x}")).collect()
    };
    format!("{}-{}-{}-{}-{}", hex(0..4), hex(4..6), hex(6..8), hex(8..10), hex(10..16))
}
