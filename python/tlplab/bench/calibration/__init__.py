"""Machines that were measured: data sets of pcie-bench, read, simulated again, compared and turned into host profiles.

A data set is a folder of CSV files from one machine, with what `lspci`, `lstopo` and `/proc/cpuinfo` said there. The way of the data:

    table     one CSV file, checked line by line
    dataset   the folder: tables become points (a case and what was measured), points become series and distributions
    machine   what the texts say of the machine: processor, last-level cache, nodes, the device's link
    target    the same cases, simulated
    compare   measured beside simulated: errors per series
    figure    the same as small multiples
    observe   which measurement shows which parameter of a host
    pauses    machines that sleep between reads, and stalls
    calibrate the estimates, corrected by the simulator, as a profile
    leftover  what such a profile leaves off of its own data
    generation what is known of a processor's generation where the data do not show it
    predict   profiles that never saw what they are compared with

`command` is the command line of it: `tlplab validate` and `tlplab calibrate`.
"""
