"""Traffic between devices, without the host's memory: `tlplab p2p`.

`flows` has the measured flows (pairs, rings, all to all), `measure` runs one of these as an ordinary experiment, `survey` puts the matrices together,
`tables` and `picture` show them.
"""
