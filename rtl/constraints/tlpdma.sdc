# SPDX-License-Identifier: MIT OR Apache-2.0
# The clock crossings for tools that read SDC; tlpdma.xdc says the same for Vivado, and its head holds here, too.
#
# pcie_clk and user_clk are the names of clocks and pcie_period and user_period their periods in the unit of the tool;
# set all four variables before:
#
#   set pcie_clock [get_clocks pcie_clk]; set pcie_period 4.0
#   set user_clock [get_clocks user_clk]; set user_period 5.0
#
# Names have `?` where tools have a separator of their own and `*` where some append `_reg` and an index. SDC has no
# bus skew and no ASYNC_REG: a bus whose bits take between nothing and one period has no more skew than that; the
# latencies of both clocks count in it. Synthesis must be told not to make shift registers of two flip-flops or to replicate them.

set faster_period [expr {$pcie_period < $user_period ? $pcie_period : $user_period}]

# The reset, other single bits and the hard IP's configuration.
set_max_delay -from [get_cells -hierarchical *?pcie_reset*] -to [get_cells -hierarchical *reset_crossing?first*] $pcie_period
set_false_path -hold -from [get_cells -hierarchical *?pcie_reset*] -to [get_cells -hierarchical *reset_crossing?first*]
set_max_delay -from [get_cells -hierarchical *?pcie_busy_kept*] -to [get_cells -hierarchical *busy_crossing?first*] $pcie_period
set_false_path -hold -from [get_cells -hierarchical *?pcie_busy_kept*] -to [get_cells -hierarchical *busy_crossing?first*]
set_max_delay -from [get_cells -hierarchical *?np_room_kept*] -to [get_cells -hierarchical *room_crossing?first*] $user_period
set_false_path -hold -from [get_cells -hierarchical *?np_room_kept*] -to [get_cells -hierarchical *room_crossing?first*]
set_max_delay -from [get_cells -hierarchical *?level_kept*] -to [get_cells -hierarchical *level_crossing?first*] $user_period
set_false_path -hold -from [get_cells -hierarchical *?level_kept*] -to [get_cells -hierarchical *level_crossing?first*]
set_max_delay -from [get_cells -hierarchical *device?idle*] -to [get_cells -hierarchical *filter?crossing?first*] $user_period
set_false_path -hold -from [get_cells -hierarchical *device?idle*] -to [get_cells -hierarchical *filter?crossing?first*]
set_max_delay -from [get_cells -hierarchical *core?configuration*] -to [get_cells -hierarchical *configuration_crossing?first*] $pcie_period
set_false_path -hold -from [get_cells -hierarchical *core?configuration*] -to [get_cells -hierarchical *configuration_crossing?first*]

# Gray pointers, within a cycle of the faster clock.
set_max_delay -from [get_cells -hierarchical *write_ends?left_gray*] -to [get_cells -hierarchical *gone_crossing?first*] $faster_period
set_false_path -hold -from [get_cells -hierarchical *write_ends?left_gray*] -to [get_cells -hierarchical *gone_crossing?first*]
set_max_delay -from [get_cells -hierarchical *completion_headers?wr_gray*] -to [get_cells -hierarchical *completion_headers?to_reader?first*] $faster_period
set_false_path -hold -from [get_cells -hierarchical *completion_headers?wr_gray*] -to [get_cells -hierarchical *completion_headers?to_reader?first*]
set_max_delay -from [get_cells -hierarchical *completion_headers?rd_gray*] -to [get_cells -hierarchical *completion_headers?to_writer?first*] $faster_period
set_false_path -hold -from [get_cells -hierarchical *completion_headers?rd_gray*] -to [get_cells -hierarchical *completion_headers?to_writer?first*]
set_max_delay -from [get_cells -hierarchical *completion_data?wr_gray*] -to [get_cells -hierarchical *completion_data?to_reader?first*] $faster_period
set_false_path -hold -from [get_cells -hierarchical *completion_data?wr_gray*] -to [get_cells -hierarchical *completion_data?to_reader?first*]
set_max_delay -from [get_cells -hierarchical *completion_data?rd_gray*] -to [get_cells -hierarchical *completion_data?to_writer?first*] $faster_period
set_false_path -hold -from [get_cells -hierarchical *completion_data?rd_gray*] -to [get_cells -hierarchical *completion_data?to_writer?first*]
set_max_delay -from [get_cells -hierarchical *request_headers?wr_gray*] -to [get_cells -hierarchical *request_headers?to_reader?first*] $faster_period
set_false_path -hold -from [get_cells -hierarchical *request_headers?wr_gray*] -to [get_cells -hierarchical *request_headers?to_reader?first*]
set_max_delay -from [get_cells -hierarchical *request_headers?rd_gray*] -to [get_cells -hierarchical *request_headers?to_writer?first*] $faster_period
set_false_path -hold -from [get_cells -hierarchical *request_headers?rd_gray*] -to [get_cells -hierarchical *request_headers?to_writer?first*]
set_max_delay -from [get_cells -hierarchical *request_data?wr_gray*] -to [get_cells -hierarchical *request_data?to_reader?first*] $faster_period
set_false_path -hold -from [get_cells -hierarchical *request_data?wr_gray*] -to [get_cells -hierarchical *request_data?to_reader?first*]
set_max_delay -from [get_cells -hierarchical *request_data?rd_gray*] -to [get_cells -hierarchical *request_data?to_writer?first*] $faster_period
set_false_path -hold -from [get_cells -hierarchical *request_data?rd_gray*] -to [get_cells -hierarchical *request_data?to_writer?first*]
set_max_delay -from [get_cells -hierarchical *tx_queue?coming?wr_gray*] -to [get_cells -hierarchical *tx_queue?coming?to_reader?first*] $faster_period
set_false_path -hold -from [get_cells -hierarchical *tx_queue?coming?wr_gray*] -to [get_cells -hierarchical *tx_queue?coming?to_reader?first*]
set_max_delay -from [get_cells -hierarchical *tx_queue?coming?rd_gray*] -to [get_cells -hierarchical *tx_queue?coming?to_writer?first*] $faster_period
set_false_path -hold -from [get_cells -hierarchical *tx_queue?coming?rd_gray*] -to [get_cells -hierarchical *tx_queue?coming?to_writer?first*]
set_max_delay -from [get_cells -hierarchical *tx_queue?line?wr_gray*] -to [get_cells -hierarchical *tx_queue?line?to_reader?first*] $faster_period
set_false_path -hold -from [get_cells -hierarchical *tx_queue?line?wr_gray*] -to [get_cells -hierarchical *tx_queue?line?to_reader?first*]
set_max_delay -from [get_cells -hierarchical *tx_queue?line?rd_gray*] -to [get_cells -hierarchical *tx_queue?line?to_writer?first*] $faster_period
set_false_path -hold -from [get_cells -hierarchical *tx_queue?line?rd_gray*] -to [get_cells -hierarchical *tx_queue?line?to_writer?first*]
set_max_delay -from [get_cells -hierarchical *tx_queue?words?wr_gray*] -to [get_cells -hierarchical *tx_queue?words?to_reader?first*] $faster_period
set_false_path -hold -from [get_cells -hierarchical *tx_queue?words?wr_gray*] -to [get_cells -hierarchical *tx_queue?words?to_reader?first*]
set_max_delay -from [get_cells -hierarchical *tx_queue?words?rd_gray*] -to [get_cells -hierarchical *tx_queue?words?to_writer?first*] $faster_period
set_false_path -hold -from [get_cells -hierarchical *tx_queue?words?rd_gray*] -to [get_cells -hierarchical *tx_queue?words?to_writer?first*]

# Words in memories of lookup tables, or of flip-flops.
set_max_delay -from [get_cells -hierarchical *completion_headers?mem*] -to $user_clock $user_period
set_false_path -hold -from [get_cells -hierarchical *completion_headers?mem*] -to $user_clock
set_max_delay -from [get_cells -hierarchical *request_headers?mem*] -to $user_clock $user_period
set_false_path -hold -from [get_cells -hierarchical *request_headers?mem*] -to $user_clock
set_max_delay -from [get_cells -hierarchical *request_data?mem*] -to $user_clock $user_period
set_false_path -hold -from [get_cells -hierarchical *request_data?mem*] -to $user_clock
set_max_delay -from [get_cells -hierarchical *tx_queue?coming?mem*] -to $pcie_clock $pcie_period
set_false_path -hold -from [get_cells -hierarchical *tx_queue?coming?mem*] -to $pcie_clock
set_max_delay -from [get_cells -hierarchical *tx_queue?line?mem*] -to $pcie_clock $pcie_period
set_false_path -hold -from [get_cells -hierarchical *tx_queue?line?mem*] -to $pcie_clock
