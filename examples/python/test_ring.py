"""The ring, tested by the TLPs on its link: with pytest's fixture `tlplab_run`."""


def test_data_are_read_in_time(tlplab_run):
    run = tlplab_run("ring.toml", overrides=["device.ring.link=gen3 x4"])
    run.expect("ring.latency.p99 < 4 us", "ring.share.tag_wait < 5 %", "errors == 0")


def test_completions_carry_all_requested_data(tlplab_run):
    tlps = tlplab_run("ring.toml").tlps
    asked = tlps.where(kind="MRd", flow="ring").expect_all(length=lambda dw: dw <= 128)
    data = tlps.where(kind="CplD", flow="ring").expect_all(status="SC")
    assert sum(data.column("length")) == sum(asked.column("length"))
    tlps.where(replay=True).expect_none()
