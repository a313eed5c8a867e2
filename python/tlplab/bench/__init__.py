"""The benchmarks of pcie-bench, on any target.

    from tlplab import bench

    cases = [bench.Case("bw_rd", size=size, pattern="random", cache="cold") for size in (64, 128, 256, 512)]
    for result in bench.run(cases, host="server", device="nfp6000", link="gen3 x8"):
        print(result.case.size, result.gbps)

`case` names the measured quantity, `running` measures it, `result` is the result, `table` and `plots` show it; `command`
is `tlplab bench`. `calibration` has the data sets of measured machines and fits hosts to them; `differential` is `tlplab measure`.
"""

from tlplab.bench.case import Case
from tlplab.bench.result import Result, Results
from tlplab.bench.running import run

__all__ = ["Case", "Result", "Results", "run"]
