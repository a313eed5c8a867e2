"""An experiment made of objects, which finds the link of a switch that has to be wider."""

import tlplab as tl

board = tl.Experiment(title="A drive and a network card behind a switch", stop="100us", host="server")
board.switch("sw0", under="host.rp0", link="gen4 x4")
board.device("ssd", under="sw0", link="gen4 x4", tags=64)
board.device("nic", under="sw0", link="gen4 x8", tags=64)
board.load("ssd", op="write", size="4KiB", outstanding=32)
board.load("nic", op="write", size="1500B", rate="40Gb/s")

if __name__ == "__main__":
    for link in ("gen4 x4", "gen4 x8", "gen4 x16"):
        result = tl.run(board.copy().set("switch.sw0.link", link))
        print(f"{link}: {result.verdict['limit']['resource']}")
        for flow in result.flows:
            print(f"  {flow['name']} {flow['payload_bps'] / 1e9:.1f} Gb/s")
