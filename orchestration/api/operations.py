"""What the API's POSTs share: how they are described and repeated, and what only Sir does.

Source: DESIGN section 14 ("Conventions").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from drf_spectacular.utils import OpenApiParameter, extend_schema
from pydantic import BaseModel

from orchestration.api.base import ApiView
from orchestration.api.bodies import ReasonBody
from orchestration.api.idempotency import Handler, idempotent
from orchestration.api.permissions import require_sir
from orchestration.api.schema import KEYED, problems

REFUSALS = (400, 401, 403, 404, 409, 412, 422)
"""What every POST to a thing that is there may be refused with."""
T = TypeVar("T")


def keyed_post(
    operation_id: str,
    tag: str,
    *,
    body: type[BaseModel],
    answer: type[BaseModel],
    status: int = 200,
    parameters: Sequence[OpenApiParameter] = (),
    refusals: Sequence[int] = REFUSALS,
) -> Callable[[Handler], Handler]:
    """Describe a `post` and let an idempotency key make its repeat harmless."""

    def decorate(handler: Handler) -> Handler:
        described: Handler = extend_schema(
            operation_id=operation_id,
            tags=[tag],
            parameters=[*KEYED, *parameters],
            request=body,
            responses={status: answer, **problems(*refusals)},
        )(idempotent(handler))
        return described

    return decorate


class SirView(ApiView):
    """Base of the calls that only Sir makes, with a reason and the version he saw."""

    def as_sir(self, service: Callable[..., T], **target: Any) -> T:
        """Call a service on a target that was found, in Sir's name.

        Errors: Forbidden for everybody else; Invalid; Stale and what the service raises.
        """
        require_sir(self.caller)
        body = self.body(ReasonBody)
        return service(
            **target,
            actor=self.actor,
            reason=body.reason,
            seen_version=self.seen_version(body.version),
        )
