"""The ASGI application: HTTP by Django behind a body limit, sockets by Channels."""

from __future__ import annotations

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup(set_prefix=False)

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.conf import settings

from config.body_limit import BodyLimit
from config.request_threads import OneHopHandler, RequestThreads
from dashboard.routing import websocket_urlpatterns
from orchestration.api.long_poll import LongPoll

application = ProtocolTypeRouter(
    {
        "http": BodyLimit(
            LongPoll(RequestThreads(OneHopHandler(at_once=settings.COUNTERSIGN_POOL_SIZE))),
            max_bytes=settings.COUNTERSIGN_MAX_BODY_BYTES,
        ),
        "websocket": AllowedHostsOriginValidator(
            AuthMiddlewareStack(URLRouter(websocket_urlpatterns))
        ),
    }
)
