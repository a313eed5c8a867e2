//! Commands of the NVM command set (NVMe 1.4 §6).

use super::Nvme;
use super::command::{ALL_NAMESPACES, Range, Submission, Work};
use super::identify::nvm;
use super::status::Status;

impl Nvme {
    /// The work of an I/O command.
    pub(super) fn io(&self, entry: &Submission) -> Result<Work, Status> {
        if entry.is_fused() {
            return Err(Status::INVALID_FIELD);
        }
        match entry.opcode() {
            nvm::FLUSH => {
                if entry.namespace() != ALL_NAMESPACES {
                    self.index_of(entry.namespace())?;
                }
                Ok(Work::Flush)
            }
            nvm::WRITE => {
                let unit_access = entry.word(12) >> 30 & 1 == 1;
                Ok(Work::Write { range: self.transferred(entry)?, through: unit_access })
            }
            nvm::READ => Ok(Work::Read(self.transferred(entry)?)),
            nvm::COMPARE => Ok(Work::Compare(self.transferred(entry)?)),
            nvm::VERIFY => Ok(Work::Verify(self.transferred(entry)?)),
            nvm::WRITE_ZEROES => Ok(Work::Zero(self.blocks(entry)?)),
            nvm::DATASET_MANAGEMENT => {
                let namespace = self.index_of(entry.namespace())?;
                Ok(Work::Deallocate { namespace, ranges: u64::from(entry.word(10) & 0xFF) + 1 })
            }
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    /// The index of a namespace.
    pub(super) fn index_of(&self, namespace: u32) -> Result<usize, Status> {
        let index = (namespace as usize).checked_sub(1);
        index.filter(|index| *index < self.namespaces.len()).ok_or(Status::INVALID_NAMESPACE)
    }

    /// The blocks a command names.
    fn blocks(&self, entry: &Submission) -> Result<Range, Status> {
        let namespace = self.index_of(entry.namespace())?;
        self.range(namespace, entry.long(10), u64::from(entry.word(12) & 0xFFFF) + 1)
    }

    /// The same, for a command that may not be about more than MDTS.
    fn transferred(&self, entry: &Submission) -> Result<Range, Status> {
        let range = self.blocks(entry)?;
        if range.bytes > self.config.mdts { Err(Status::INVALID_FIELD) } else { Ok(range) }
    }

    /// Blocks in bytes, if they are there.
    pub(super) fn range(&self, namespace: usize, first: u64, blocks: u64) -> Result<Range, Status> {
        let of = &self.namespaces[namespace];
        let end = first.checked_add(blocks).ok_or(Status::LBA_OUT_OF_RANGE)?;
        if end > of.bytes / of.block {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        Ok(Range { namespace, at: first * of.block, bytes: blocks * of.block })
    }

    /// The ranges that Dataset Management lists, if its blocks are to be deallocated.
    pub(super) fn listed(
        &self,
        entry: &Submission,
        namespace: usize,
        list: &[u8],
    ) -> Result<Vec<Range>, Status> {
        let deallocates = entry.word(11) >> 2 & 1 == 1;
        let mut ranges = Vec::new();
        for item in list.chunks_exact(16) {
            let blocks = u32::from_le_bytes(item[4..8].try_into().expect("4 bytes"));
            let first = u64::from_le_bytes(item[8..].try_into().expect("8 bytes"));
            let range = self.range(namespace, first, blocks.into())?;
            ranges.extend((deallocates && blocks > 0).then_some(range));
        }
        Ok(ranges)
    }
}
