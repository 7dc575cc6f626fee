"""The socket of a page: hints out, nothing in.

It joins first, then the page fetches its snapshot. It holds no database connection while it is idle
and accepts no commands: whatever a page sends is dropped.
Source: DESIGN section 15, STYLE section 6.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

from dashboard.hub import TRY_AGAIN_LATER, Deaf, Mailbox, process_hub, socket_groups
from orchestration.access import role_of, visible_projects

NOT_SIGNED_IN = 4401
NOT_FOUND = 4404
ALL_PROJECTS = "*"
MAX_PROJECTS = 500


class LiveConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # Channels has no types
    """One open page: hints, `catch_up` and `beat`. Shape: what comes together is one `batch`."""

    # The hub listens for all sockets; a channel of its own would cost each a subscription.
    channel_layer_alias = "the hub listens"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.mailbox = Mailbox()
        self.writer: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        """Let signed-in readers in; join before accepting, so that no later hint is missed."""
        wanted = parse_qs(self.scope.get("query_string", b"").decode()).get("project", [])
        user = cast("AbstractBaseUser | AnonymousUser", self.scope["user"])
        ids = await find_projects(user, wanted)
        if ids is None:
            await self.close(code=NOT_SIGNED_IN)
            return
        if wanted and not ids and wanted != [ALL_PROJECTS]:
            await self.close(code=NOT_FOUND)
            return
        self.mailbox = Mailbox(topics="project:" if ALL_PROJECTS in wanted else "")
        try:
            await process_hub().join(self.mailbox, socket_groups(ids))
        except Deaf:
            await process_hub().leave(self.mailbox)
            await self.close(code=TRY_AGAIN_LATER)
            return
        await self.accept()
        self.writer = asyncio.create_task(self._write())

    async def _write(self) -> None:
        """Send what the mailbox keeps until it is ended."""
        while True:
            texts = await self.mailbox.take()
            if texts:
                await self.send(text_data=one_message(texts))
            if self.mailbox.close_code is not None:
                await self.close(code=self.mailbox.close_code)
                return

    async def disconnect(self, code: int) -> None:
        """Leave the hub and stop writing."""
        if self.writer is None:
            return
        await process_hub().leave(self.mailbox)
        self.writer.cancel()
        await asyncio.gather(self.writer, return_exceptions=True)


def one_message(texts: Sequence[str]) -> str:
    """Join texts of a delivery into one message: writing to a socket costs more than a hint."""
    return texts[0] if len(texts) == 1 else f'{{"batch": [{", ".join(texts)}]}}'


@database_sync_to_async  # type: ignore[untyped-decorator]  # Channels has no types
def find_projects(user: AbstractBaseUser | AnonymousUser, slugs: Sequence[str]) -> list[int] | None:
    """Ids of the projects a socket asks for; None when its user may not read."""
    if role_of(user) is None:
        return None
    rows = visible_projects(user).order_by("-pk")
    if ALL_PROJECTS not in slugs:
        rows = rows.filter(slug__in=slugs)
    return list(rows.values_list("pk", flat=True)[:MAX_PROJECTS])
