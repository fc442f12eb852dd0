import sys

import pytest

from workers.toolchain.process import ToolFailed, run_tool


def test_output_holds_both_streams() -> None:
    program = "import sys; print('out', flush=True); print('err', file=sys.stderr)"
    assert run_tool([sys.executable, "-c", program], timeout_s=30).split() == ["out", "err"]


def test_failure_keeps_code_and_output() -> None:
    with pytest.raises(ToolFailed, match="ended with code 3") as caught:
        run_tool([sys.executable, "-c", "print('why'); raise SystemExit(3)"], timeout_s=30)
    assert caught.value.exit_code == 3
    assert caught.value.output == "why\n"


def test_time_limit_ends_the_tool() -> None:
    program = "import time; print('started', flush=True); time.sleep(600)"
    with pytest.raises(ToolFailed, match="ran out of time") as caught:
        run_tool([sys.executable, "-c", program], timeout_s=1)
    assert caught.value.exit_code is None


def test_environment_is_only_what_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNFARM_WORKER_TOKEN", "secret")
    program = "import os; print('NNFARM_WORKER_TOKEN' in os.environ, os.environ['A'])"
    command = [sys.executable, "-c", program]
    assert run_tool(command, timeout_s=30, environment={"A": "1"}) == "False 1\n"
