//! The configuration spaces of a run over time, for its document.

use crate::result::{ConfigSpaces, FunctionRegisters, RegisterBlock, RegisterChange, RegisterGap};
use std::fmt::Write as _;
use tlplab_fabric::Fabric;
use tlplab_fabric::registers::{Gap, RegisterHistory};

/// `None` where the run does not keep them.
pub(crate) fn config_spaces(fabric: &mut Fabric) -> Option<ConfigSpaces> {
    let histories = fabric.register_histories();
    if histories.is_empty() {
        return None;
    }
    let mut spaces = ConfigSpaces::default();
    for (function, history) in histories.into_iter().enumerate() {
        spaces.changes.extend(history.changes.iter().map(|change| RegisterChange {
            function,
            time_fs: change.at.as_fs(),
            offset: change.offset,
            old: change.old,
            new: change.new,
            by: change.by.into(),
        }));
        spaces.functions.push(registers(history));
    }
    spaces.changes.sort_by_key(|change| change.time_fs);
    Some(spaces)
}

fn registers(history: RegisterHistory) -> FunctionRegisters {
    let gap = |gap: Gap| RegisterGap { from_fs: gap.from.as_fs(), to_fs: gap.to.as_fs(), count: gap.count };
    FunctionRegisters {
        name: history.name,
        function: history.id.map(|id| id.to_string()),
        start: blocks(&history.start[..]),
        gap: history.gap.map(gap),
    }
}

/// The doublewords that are not 0.
fn blocks(bytes: &[u8]) -> Vec<RegisterBlock> {
    let mut blocks: Vec<RegisterBlock> = Vec::new();
    let mut end = None;
    for (offset, word) in (0u16..).step_by(4).zip(bytes.chunks(4)) {
        if word.iter().all(|byte| *byte == 0) {
            continue;
        }
        if end != Some(offset) {
            blocks.push(RegisterBlock { offset, data: String::new() });
        }
        if let Some(block) = blocks.last_mut() {
            word.iter().for_each(|byte| {
                let _ = write!(block.data, "{byte:02x}");
            });
        }
        end = Some(offset + 4);
    }
    blocks
}
