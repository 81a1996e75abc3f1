"""Wrong calls, as a newcomer meets them: one clear line each, exit code 2, nothing else; kept in wrong_calls.txt."""

import pytest

from tests import wrong_calls

STORED = wrong_calls.steps(wrong_calls.TRANSCRIPT.read_text(encoding="utf-8"))


@pytest.mark.certificate
@pytest.mark.exact
def test_every_wrong_call_says_what_the_transcript_shows():
    pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")
    for stored, now in zip(STORED, wrong_calls.again(STORED), strict=True):
        assert str(now) == str(stored), "python -m tests.wrong_calls brings the transcript up to date"


def test_the_transcript_has_one_line_of_error_for_each_call():
    calls = [step for step in STORED if step.is_call]
    assert len(calls) >= 100
    for program in wrong_calls.APPS:
        assert sum(call.line.startswith(f"$ {program} ") for call in calls) >= 10
    for call in calls:
        if call.is_command:
            said, code = call.below
            assert said.startswith("error: "), call
            assert code == "exit 2", call
        else:
            (said,) = call.below
            assert said.startswith(("InvalidInput: ", "UnhashableResult: ")), call
        assert "Traceback" not in said
        assert "0x" not in said, "an address says nothing to a reader"
    for other in STORED:
        if other.line.startswith(">>> ") and not other.is_call:
            assert not other.below
