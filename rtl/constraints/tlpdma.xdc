# SPDX-License-Identifier: MIT OR Apache-2.0
# Constraints of the clock crossings for Vivado, for tlpdma_trn, tlpdma_usp or a design with one of them:
#
#   read_xdc -ref tlpdma_usp rtl/constraints/tlpdma.xdc
#   set_property PROCESSING_ORDER LATE [get_files tlpdma.xdc]
#
# pcie_clk and user_clk are clocks of the design's own constraints. Every path between them is in here; what is not
# is a defect, so do not declare the two clocks asynchronous to each other, nor a false path between them: that would
# hide it, and take the precedence over the limits below. rtl/test/test_crossings.py finds every crossing of the
# netlist in this file and every name of this file in the netlist; docs/rtl-tests.md.
#
# One command a line, cells by `get_cells -hierarchical -filter`, names with `*` and `?` only: the test reads no more.

set pcie_clock [get_clocks -of_objects [get_ports pcie_clk]]
set user_clock [get_clocks -of_objects [get_ports user_clk]]
set pcie_period [get_property -min PERIOD $pcie_clock]
set user_period [get_property -min PERIOD $user_clock]
set faster_period [expr {$pcie_period < $user_period ? $pcie_period : $user_period}]

# Both flip-flops of each synchroniser: side by side, neither replicated nor made a shift register.
set_property ASYNC_REG TRUE [get_cells -hierarchical -filter {NAME =~ *reset_crossing/first_reg* || NAME =~ *reset_crossing/second_reg*}]
set_property ASYNC_REG TRUE [get_cells -hierarchical -filter {NAME =~ *busy_crossing/first_reg* || NAME =~ *busy_crossing/second_reg*}]
set_property ASYNC_REG TRUE [get_cells -hierarchical -filter {NAME =~ *room_crossing/first_reg* || NAME =~ *room_crossing/second_reg*}]
set_property ASYNC_REG TRUE [get_cells -hierarchical -filter {NAME =~ *level_crossing/first_reg* || NAME =~ *level_crossing/second_reg*}]
set_property ASYNC_REG TRUE [get_cells -hierarchical -filter {NAME =~ *filter/crossing/first_reg* || NAME =~ *filter/crossing/second_reg*}]
set_property ASYNC_REG TRUE [get_cells -hierarchical -filter {NAME =~ *configuration_crossing/first_reg* || NAME =~ *configuration_crossing/second_reg*}]
set_property ASYNC_REG TRUE [get_cells -hierarchical -filter {NAME =~ *gone_crossing/first_reg* || NAME =~ *gone_crossing/second_reg*}]
set_property ASYNC_REG TRUE [get_cells -hierarchical -filter {NAME =~ *completion_headers/to_reader/first_reg* || NAME =~ *completion_headers/to_reader/second_reg*}]
set_property ASYNC_REG TRUE [get_cells -hierarchical -filter {NAME =~ *completion_headers/to_writer/first_reg* || NAME =~ *completion_headers/to_writer/second_reg*}]
set_property ASYNC_REG TRUE [get_cells -hierarchical -filter {NAME =~ *completion_data/to_reader/first_reg* || NAME =~ *completion_data/to_reader/second_reg*}]
set_property ASYNC_REG TRUE [get_cells -hierarchical -filter {NAME =~ *completion_data/to_writer/first_reg* || NAME =~ *completion_data/to_writer/second_reg*}]
set_property ASYNC_REG TRUE [get_cells -hierarchical -filter {NAME =~ *request_headers/to_reader/first_reg* || NAME =~ *request_headers/to_reader/second_reg*}]
set_property ASYNC_REG TRUE [get_cells -hierarchical -filter {NAME =~ *request_headers/to_writer/first_reg* || NAME =~ *request_headers/to_writer/second_reg*}]
set_property ASYNC_REG TRUE [get_cells -hierarchical -filter {NAME =~ *request_data/to_reader/first_reg* || NAME =~ *request_data/to_reader/second_reg*}]
set_property ASYNC_REG TRUE [get_cells -hierarchical -filter {NAME =~ *request_data/to_writer/first_reg* || NAME =~ *request_data/to_writer/second_reg*}]
set_property ASYNC_REG TRUE [get_cells -hierarchical -filter {NAME =~ *tx_queue/coming/to_reader/first_reg* || NAME =~ *tx_queue/coming/to_reader/second_reg*}]
set_property ASYNC_REG TRUE [get_cells -hierarchical -filter {NAME =~ *tx_queue/coming/to_writer/first_reg* || NAME =~ *tx_queue/coming/to_writer/second_reg*}]
set_property ASYNC_REG TRUE [get_cells -hierarchical -filter {NAME =~ *tx_queue/line/to_reader/first_reg* || NAME =~ *tx_queue/line/to_reader/second_reg*}]
set_property ASYNC_REG TRUE [get_cells -hierarchical -filter {NAME =~ *tx_queue/line/to_writer/first_reg* || NAME =~ *tx_queue/line/to_writer/second_reg*}]
set_property ASYNC_REG TRUE [get_cells -hierarchical -filter {NAME =~ *tx_queue/words/to_reader/first_reg* || NAME =~ *tx_queue/words/to_reader/second_reg*}]
set_property ASYNC_REG TRUE [get_cells -hierarchical -filter {NAME =~ *tx_queue/words/to_writer/first_reg* || NAME =~ *tx_queue/words/to_writer/second_reg*}]

# The reset, and other single bits: each level lasts for several cycles of the slower clock.
set_max_delay -datapath_only -from [get_cells -hierarchical -filter {NAME =~ *pcie_reset_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *reset_crossing/first_reg*}] $pcie_period
set_max_delay -datapath_only -from [get_cells -hierarchical -filter {NAME =~ *pcie_busy_kept_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *busy_crossing/first_reg*}] $pcie_period
set_max_delay -datapath_only -from [get_cells -hierarchical -filter {NAME =~ *np_room_kept_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *room_crossing/first_reg*}] $user_period
set_max_delay -datapath_only -from [get_cells -hierarchical -filter {NAME =~ *level_kept_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *level_crossing/first_reg*}] $user_period
set_max_delay -datapath_only -from [get_cells -hierarchical -filter {NAME =~ *device/idle_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *filter/crossing/first_reg*}] $user_period

# The hard IP's configuration: quasi-static, its bits may arrive one after the other, but soon.
set_max_delay -datapath_only -from [get_cells -hierarchical -filter {NAME =~ *core/configuration_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *configuration_crossing/first_reg*}] $pcie_period
set_bus_skew -from [get_cells -hierarchical -filter {NAME =~ *core/configuration_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *configuration_crossing/first_reg*}] $faster_period

# Gray pointers: one bit changes in a cycle. All bits arrive within a cycle of the faster clock, so that no more than
# one is caught while it changes.
set_max_delay -datapath_only -from [get_cells -hierarchical -filter {NAME =~ *write_ends/left_gray_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *gone_crossing/first_reg*}] $pcie_period
set_bus_skew -from [get_cells -hierarchical -filter {NAME =~ *write_ends/left_gray_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *gone_crossing/first_reg*}] $faster_period
set_max_delay -datapath_only -from [get_cells -hierarchical -filter {NAME =~ *completion_headers/wr_gray_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *completion_headers/to_reader/first_reg*}] $pcie_period
set_bus_skew -from [get_cells -hierarchical -filter {NAME =~ *completion_headers/wr_gray_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *completion_headers/to_reader/first_reg*}] $faster_period
set_max_delay -datapath_only -from [get_cells -hierarchical -filter {NAME =~ *completion_headers/rd_gray_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *completion_headers/to_writer/first_reg*}] $user_period
set_bus_skew -from [get_cells -hierarchical -filter {NAME =~ *completion_headers/rd_gray_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *completion_headers/to_writer/first_reg*}] $faster_period
set_max_delay -datapath_only -from [get_cells -hierarchical -filter {NAME =~ *completion_data/wr_gray_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *completion_data/to_reader/first_reg*}] $pcie_period
set_bus_skew -from [get_cells -hierarchical -filter {NAME =~ *completion_data/wr_gray_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *completion_data/to_reader/first_reg*}] $faster_period
set_max_delay -datapath_only -from [get_cells -hierarchical -filter {NAME =~ *completion_data/rd_gray_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *completion_data/to_writer/first_reg*}] $user_period
set_bus_skew -from [get_cells -hierarchical -filter {NAME =~ *completion_data/rd_gray_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *completion_data/to_writer/first_reg*}] $faster_period
set_max_delay -datapath_only -from [get_cells -hierarchical -filter {NAME =~ *request_headers/wr_gray_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *request_headers/to_reader/first_reg*}] $pcie_period
set_bus_skew -from [get_cells -hierarchical -filter {NAME =~ *request_headers/wr_gray_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *request_headers/to_reader/first_reg*}] $faster_period
set_max_delay -datapath_only -from [get_cells -hierarchical -filter {NAME =~ *request_headers/rd_gray_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *request_headers/to_writer/first_reg*}] $user_period
set_bus_skew -from [get_cells -hierarchical -filter {NAME =~ *request_headers/rd_gray_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *request_headers/to_writer/first_reg*}] $faster_period
set_max_delay -datapath_only -from [get_cells -hierarchical -filter {NAME =~ *request_data/wr_gray_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *request_data/to_reader/first_reg*}] $pcie_period
set_bus_skew -from [get_cells -hierarchical -filter {NAME =~ *request_data/wr_gray_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *request_data/to_reader/first_reg*}] $faster_period
set_max_delay -datapath_only -from [get_cells -hierarchical -filter {NAME =~ *request_data/rd_gray_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *request_data/to_writer/first_reg*}] $user_period
set_bus_skew -from [get_cells -hierarchical -filter {NAME =~ *request_data/rd_gray_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *request_data/to_writer/first_reg*}] $faster_period
set_max_delay -datapath_only -from [get_cells -hierarchical -filter {NAME =~ *tx_queue/coming/wr_gray_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *tx_queue/coming/to_reader/first_reg*}] $user_period
set_bus_skew -from [get_cells -hierarchical -filter {NAME =~ *tx_queue/coming/wr_gray_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *tx_queue/coming/to_reader/first_reg*}] $faster_period
set_max_delay -datapath_only -from [get_cells -hierarchical -filter {NAME =~ *tx_queue/coming/rd_gray_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *tx_queue/coming/to_writer/first_reg*}] $pcie_period
set_bus_skew -from [get_cells -hierarchical -filter {NAME =~ *tx_queue/coming/rd_gray_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *tx_queue/coming/to_writer/first_reg*}] $faster_period
set_max_delay -datapath_only -from [get_cells -hierarchical -filter {NAME =~ *tx_queue/line/wr_gray_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *tx_queue/line/to_reader/first_reg*}] $user_period
set_bus_skew -from [get_cells -hierarchical -filter {NAME =~ *tx_queue/line/wr_gray_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *tx_queue/line/to_reader/first_reg*}] $faster_period
set_max_delay -datapath_only -from [get_cells -hierarchical -filter {NAME =~ *tx_queue/line/rd_gray_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *tx_queue/line/to_writer/first_reg*}] $pcie_period
set_bus_skew -from [get_cells -hierarchical -filter {NAME =~ *tx_queue/line/rd_gray_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *tx_queue/line/to_writer/first_reg*}] $faster_period
set_max_delay -datapath_only -from [get_cells -hierarchical -filter {NAME =~ *tx_queue/words/wr_gray_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *tx_queue/words/to_reader/first_reg*}] $user_period
set_bus_skew -from [get_cells -hierarchical -filter {NAME =~ *tx_queue/words/wr_gray_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *tx_queue/words/to_reader/first_reg*}] $faster_period
set_max_delay -datapath_only -from [get_cells -hierarchical -filter {NAME =~ *tx_queue/words/rd_gray_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *tx_queue/words/to_writer/first_reg*}] $pcie_period
set_bus_skew -from [get_cells -hierarchical -filter {NAME =~ *tx_queue/words/rd_gray_reg*}] -to [get_cells -hierarchical -filter {NAME =~ *tx_queue/words/to_writer/first_reg*}] $faster_period

# Words: they were written SYNC cycles of the reader, two or more, before it takes them out of a memory of lookup
# tables. Block memories (completion_data, tx_queue/words) have the reader's clock at the port where it reads.
set_max_delay -datapath_only -from [get_cells -hierarchical -filter {NAME =~ *completion_headers/mem_reg*}] -to $user_clock $user_period
set_max_delay -datapath_only -from [get_cells -hierarchical -filter {NAME =~ *request_headers/mem_reg*}] -to $user_clock $user_period
set_max_delay -datapath_only -from [get_cells -hierarchical -filter {NAME =~ *request_data/mem_reg*}] -to $user_clock $user_period
set_max_delay -datapath_only -from [get_cells -hierarchical -filter {NAME =~ *tx_queue/coming/mem_reg*}] -to $pcie_clock $pcie_period
set_max_delay -datapath_only -from [get_cells -hierarchical -filter {NAME =~ *tx_queue/line/mem_reg*}] -to $pcie_clock $pcie_period
