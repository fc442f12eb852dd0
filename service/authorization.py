"""Who may call: users, workers, agents, and the holders of one job or lease."""

from __future__ import annotations

import hmac
from typing import Annotated

from fastapi import Depends
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import SecretStr

from service.components import ComponentsDep
from service.contracts.errors import NnfarmError
from service.tokens import Grant, TokenKind

_bearer = HTTPBearer(auto_error=False, description="See docs/reference/http-api.md for the kinds")
_Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


def allow_user(components: ComponentsDep, credentials: _Credentials) -> None:
    """Anyone, unless the operator has set tokens."""
    if components.settings.api_tokens:
        _require_one_of(components.settings.api_tokens, credentials)


def allow_user_or_agent(components: ComponentsDep, credentials: _Credentials) -> None:
    """Whom `allow_user` lets in, and holders of the agents' token."""
    settings = components.settings
    if settings.api_tokens:
        _require_one_of((*settings.api_tokens, settings.agent_token), credentials)


def allow_worker(components: ComponentsDep, credentials: _Credentials) -> None:
    """Holders of the workers' token."""
    _require_one_of((components.settings.worker_token,), credentials)


def allow_agent(components: ComponentsDep, credentials: _Credentials) -> None:
    """Holders of the agents' token."""
    _require_one_of((components.settings.agent_token,), credentials)


def _grant(components: ComponentsDep, credentials: _Credentials) -> Grant:
    return components.tokens.verify(_token(credentials))


HolderGrant = Annotated[Grant, Depends(_grant)]
"""Any valid job or lease token."""


def _job_grant(job_id: str, grant: HolderGrant) -> Grant:
    return _require_subject(grant, TokenKind.JOB, job_id)


def _lease_grant(run_id: str, grant: HolderGrant) -> Grant:
    return _require_subject(grant, TokenKind.LEASE, run_id)


JobGrant = Annotated[Grant, Depends(_job_grant)]
"""The token of the job named by `job_id` in the path."""

LeaseGrant = Annotated[Grant, Depends(_lease_grant)]
"""The token of the lease of the run named by `run_id` in the path."""


def require_generation(grant: Grant, generation: int) -> None:
    """Refuse a body that speaks for another attempt than its token.

    Raises:
        NnfarmError: ``request.forbidden``.
    """
    if grant.generation != generation:
        raise NnfarmError(
            "request.forbidden",
            f"The token is for attempt {grant.generation}, the request is for {generation}.",
        )


def _require_subject(grant: Grant, kind: TokenKind, subject: str) -> Grant:
    if grant.kind is not kind or grant.subject != subject:
        raise NnfarmError("request.forbidden", f"The token is not the {kind} token of {subject}.")
    return grant


def _require_one_of(
    tokens: tuple[SecretStr, ...], credentials: HTTPAuthorizationCredentials | None
) -> None:
    given = _token(credentials).encode()
    # All are compared, so that the time taken does not tell which one came close.
    matches = [hmac.compare_digest(token.get_secret_value().encode(), given) for token in tokens]
    if not any(matches):
        raise NnfarmError("request.unauthorized", "The token is not valid for this call.")


def _token(credentials: HTTPAuthorizationCredentials | None) -> str:
    if credentials is None:
        raise NnfarmError("request.unauthorized", "The call needs 'Authorization: Bearer TOKEN'.")
    return credentials.credentials
