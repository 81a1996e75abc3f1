"""Progress of a long run, where no terminal shows a bar: a line now and then tells that it is alive."""

from gpu_runner.cli.progress import Progress


def test_progress_in_a_log(capsys, monkeypatch):
    clock = iter([0.0, 30.0, 60.0, 60.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    progress = Progress(5, 2)
    progress.advance("one question")
    progress.advance("another")
    assert capsys.readouterr().err == "4/5 done, about 0 min left\n"
