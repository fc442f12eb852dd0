from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service.contracts.errors import NnfarmError

Nnfarm = Callable[..., int]
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "digits.onnx"
    path.write_bytes(b"model")
    return path


def test_compile_shows_the_table_and_saves_packages(
    nnfarm: Nnfarm, farm: Any, model: Path, tmp_path: Path, capsys: Capture
) -> None:
    output = tmp_path / "out"
    code = nnfarm(
        "compile", model, "--levels", "1,4", "--abi", "x86_64,arm64-v8a", "--run-on", "any",
        "--dataset", model, "--exclude-op", "Softmax", "--exclude-op", "Relu",
        "--exclude-node", "head", "--only-node", "conv", "--min-subgraph-ops", "2",
        "--cpu-variant", "avx2",
        "--accelerator", "element_wise", "--accelerator", "nnapi",
        "--nnapi", "device=type:gpu", "--nnapi", "execute-timeout-ms=500",
        "--precision", "float16", "--input-shape", "image=1,1,8,8", "--output", output,
    )  # fmt: skip
    out = capsys.readouterr().out

    assert code == 0
    assert farm.requests == [
        {
            "model_id": "mod_9372",
            "levels": [1, 4],
            "abis": ["x86_64", "arm64-v8a"],
            "dataset_id": "dat_1",
            "options": {
                "exclude_ops": ["Softmax", "Relu"],
                "exclude_nodes": ["head"],
                "only_nodes": ["conv"],
                "accelerators": ["element_wise", "nnapi"],
                "min_subgraph_ops": 2,
                "cpu_variants": ["avx2"],
                "precision": "float16",
                "nnapi": {"device": "type:gpu", "execute_timeout_ms": 500},
                "input_shapes": {"image": [1, 1, 8, 8]},
            },
            "run_on": "any",
        }
    ]
    assert sorted(path.name for path in output.iterdir()) == [
        "digits-level1-arm64-v8a.zip",
        "digits-level1-x86_64.zip",
        "digits-level4-arm64-v8a.zip",
        "digits-level4-x86_64.zip",
    ]
    for text in ("12/13", "61.4 kB", "99.0 %", "98.5 %", "1e-05", "0.300 ms simulated", "0.320 ms"):
        assert text in out
    assert "virtual-level4-x86_64 (mixed)" in out


def test_json_is_the_only_thing_on_standard_output(
    nnfarm: Nnfarm, model: Path, capsys: Capture
) -> None:
    assert nnfarm("--json", "compile", model, "--levels", "4") == 0
    content = json.loads(capsys.readouterr().out)
    assert content["compilation"]["id"] == "cmp_1"
    assert content["results"][0]["run"]["measurement"]["accuracy"]["top1"] == 0.985


def test_no_wait_returns_the_id(nnfarm: Nnfarm, farm: Any, model: Path, capsys: Capture) -> None:
    farm.is_final = False
    assert nnfarm("compile", model, "--no-wait") == 0
    assert capsys.readouterr().out.split() == ["cmp_1", "running"]


def test_a_failed_compilation_is_exit_1_with_its_reason(
    nnfarm: Nnfarm, farm: Any, model: Path, capsys: Capture
) -> None:
    error = NnfarmError("compile.unsupported_operation", "The importer does not know 'Foo'.")
    farm.failure = error.to_problem().model_dump(mode="json")
    assert nnfarm("compile", model) == 1
    assert "does not know 'Foo'. (compile.unsupported_operation)" in capsys.readouterr().err


def test_a_failed_run_is_exit_1(nnfarm: Nnfarm, farm: Any, model: Path, capsys: Capture) -> None:
    farm.run_status = "failed"
    farm.run_error = NnfarmError("run.crashed", "SIGSEGV").to_problem().model_dump(mode="json")
    assert nnfarm("compile", model, "--run-on", "any") == 1
    assert "failed: SIGSEGV (run.crashed)" in capsys.readouterr().err


def test_a_failed_run_of_an_earlier_request_is_not_held_against_this_one(
    nnfarm: Nnfarm, farm: Any, model: Path, capsys: Capture
) -> None:
    farm.earlier_runs = [farm.run(4, "arm64-v8a") | {"id": "run_old", "status": "failed"}]
    assert nnfarm("--json", "compile", model, "--levels", "4", "--run-on", "any") == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert [result["run"]["id"] for result in results] == ["run_4.arm64-v8a"]


def test_a_skipped_run_is_told_and_no_failure(
    nnfarm: Nnfarm, farm: Any, model: Path, capsys: Capture
) -> None:
    farm.run_status = "skipped"
    error = NnfarmError("run.no_device", "No phone with arm64-v8a is attached.")
    farm.run_error = error.to_problem().model_dump(mode="json")
    assert nnfarm("compile", model, "--run-on", "any", "--levels", "2") == 0
    assert "level 2 arm64-v8a: not run: No phone with arm64-v8a" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (("--min-agreement", "0.98", "--max-error", "0.1"), 0, ""),
        (("--min-agreement", "0.999"), 4, "agreement 0.9900 is below 0.999"),
        (("--max-error", "0.001"), 4, "largest error 0.01 is above 0.001"),
    ],
)
def test_thresholds(
    nnfarm: Nnfarm,
    farm: Any,
    model: Path,
    capsys: Capture,
    options: tuple[str, ...],
    code: int,
    sentence: str,
) -> None:
    farm.agreement, farm.max_abs_error = 0.99, 0.01
    assert nnfarm("compile", model, "--run-on", "any", *options) == code
    assert sentence in capsys.readouterr().err


def test_nothing_measured_does_not_pass_a_threshold(
    nnfarm: Nnfarm, farm: Any, model: Path, capsys: Capture
) -> None:
    farm.run_status = "skipped"
    assert nnfarm("compile", model, "--run-on", "any", "--max-error", "1") == 4
    assert "was not measured" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("compile", "MODEL", "--levels", "9"), "Feature level 9 is not one of 1 to 8."),
        (("compile", "MODEL", "--levels", "four"), "'four' is not a number"),
        (("compile", "MODEL", "--abi", "mips"), "'mips' is not one of arm64-v8a"),
        (("compile", "MODEL", "--max-error", "1"), "thresholds need a run"),
        (("compile", "MODEL", "--no-wait", "--output", "x"), "not with --no-wait"),
        (("compile", "MODEL", "--nnapi", "priority"), "'priority' is not NAME=VALUE"),
        (("compile", "MODEL", "--nnapi", "priority=urgent"), "--nnapi priority: Input should be"),
        (("compile", "MODEL", "--nnapi", "device=type:tpu"), "the types of devices are other, cpu"),
        (("compile", "MODEL", "--nnapi", "speed=1"), "--nnapi speed: Extra inputs"),
        (("compile", "nothing.onnx"), "nothing.onnx"),
        (("compile", "MODEL", "--min-agreement", "2"), "min-agreement"),
        (("paint",), "paint"),
        (("show", "cmp_2"), "404"),
    ],
)
def test_wrong_usage_is_one_line(
    nnfarm: Nnfarm, model: Path, capsys: Capture, arguments: tuple[str, ...], sentence: str
) -> None:
    code = nnfarm(*(str(model) if word == "MODEL" else word for word in arguments))
    err = capsys.readouterr().err
    assert code == (3 if arguments[0] == "show" else 2)
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert sentence in err


def test_show_lists_operations_with_reasons(nnfarm: Nnfarm, capsys: Capture) -> None:
    assert nnfarm("show", "cmp_1", "--ops") == 0
    out = capsys.readouterr().out
    assert "1 of 2 operations offloaded" in out
    assert "CONV_2D" in out
    assert "Softmax [a] was excluded. (nnapi.excluded)" in out


def test_show_of_an_unfinished_compilation(nnfarm: Nnfarm, farm: Any, capsys: Capture) -> None:
    farm.is_final = False
    assert nnfarm("show", "cmp_1") == 0
    assert "cmp_1: running, 3 of 3 steps" in capsys.readouterr().out


def test_download_saves_every_package(nnfarm: Nnfarm, tmp_path: Path) -> None:
    assert nnfarm("download", "cmp_1", "--output", tmp_path / "d") == 0
    assert [path.name for path in (tmp_path / "d").iterdir()] == ["digits-level4-x86_64.zip"]


def test_devices_and_models(nnfarm: Nnfarm, capsys: Capture) -> None:
    assert nnfarm("devices") == 0
    assert "virtual-level4-x86_64" in capsys.readouterr().out
    assert nnfarm("--json", "models") == 0
    assert len(json.loads(capsys.readouterr().out)["models"]) == 2


def _process(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "service.client.command", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_the_process_exits_with_the_code(url: str) -> None:
    wrong = _process("--url", "ftp://x", "devices")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("error: 'ftp://x' does not begin with http://")
    assert _process("--url", url, "devices").returncode == 0


def test_help_documents_the_exit_codes() -> None:
    text = _process("compile", "--help").stdout
    for word in ("Exit codes", "--min-agreement", "--exclude-op"):
        assert word in text
