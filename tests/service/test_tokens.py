from __future__ import annotations

import pytest

from service.contracts.errors import NnfarmError
from service.tokens import Grant, TokenKind, TokenSigner

GRANT = Grant(TokenKind.JOB, "cmp_1", 2)


def test_token_carries_its_grant() -> None:
    signer = TokenSigner("secret", 60)
    assert signer.verify(signer.sign(GRANT)) == GRANT


@pytest.mark.parametrize(
    "spoil",
    [
        lambda token: token[:-2],
        lambda token: "A" + token[1:],
        lambda token: token + ".more",
        lambda _: "",
        lambda _: ".",
        lambda _: "é.é",
        lambda token: token.split(".")[0] + ".",
    ],
)
def test_spoiled_token_is_unauthorized(spoil) -> None:  # type: ignore[no-untyped-def]
    signer = TokenSigner("secret", 60)
    with pytest.raises(NnfarmError) as caught:
        signer.verify(spoil(signer.sign(GRANT)))
    assert caught.value.code == "request.unauthorized"


def test_token_of_another_service_is_unauthorized() -> None:
    with pytest.raises(NnfarmError, match="signature"):
        TokenSigner("mine", 60).verify(TokenSigner("theirs", 60).sign(GRANT))


def test_expired_token_is_unauthorized() -> None:
    signer = TokenSigner("secret", -1)
    with pytest.raises(NnfarmError, match="expired"):
        signer.verify(signer.sign(GRANT))
