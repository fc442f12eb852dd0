import pytest
import tvm

from service.contracts.targets import Abi
from workers.toolchain.targets import target_for


@pytest.mark.parametrize("abi", list(Abi))
def test_tvm_takes_the_target(abi: Abi) -> None:
    target = tvm.target.Target(target_for(abi))
    assert "android" in str(target.attrs["mtriple"])


@pytest.mark.parametrize("abi", list(Abi))
def test_triple_names_vendor_and_least_api_level(abi: Abi) -> None:
    _, vendor, system, environment = target_for(abi)["mtriple"].split("-")
    assert (vendor, system) == ("unknown", "linux")
    assert environment in ("android27", "androideabi27")
