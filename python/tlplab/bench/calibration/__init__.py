"""Machines that were measured: data sets of pcie-bench, read, simulated again, compared and turned into host profiles.

A data set is a folder of CSV files from one machine, with the output of `lspci`, `lstopo` and `/proc/cpuinfo` there. The way of the data:

    table     one CSV file, checked line by line
    dataset   the folder: tables become points (a case and its measurement), points become series and distributions
    machine   the machine by these texts: processor, last-level cache, nodes, the device's link
    target    the same cases, simulated
    compare   measured and simulated: errors per series
    figure    the same as small multiples
    observe   which measurement shows which parameter of a host
    pauses    machines that sleep between reads, and stalls
    calibrate the estimates, corrected by the simulator, as a profile
    leftover  the residuals of such a profile on its own data
    generation facts of a processor's generation that the data do not show
    predict   profiles that never saw the data with which they are compared

`command` is the command line of it: `tlplab validate` and `tlplab calibrate`.
"""
