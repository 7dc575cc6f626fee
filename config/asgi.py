"""The ASGI application: HTTP by Django behind a body limit, sockets by Channels."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django_application = get_asgi_application()

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.conf import settings

from config.body_limit import BodyLimit
from dashboard.routing import websocket_urlpatterns
from orchestration.api.long_poll import LongPoll

application = ProtocolTypeRouter(
    {
        "http": BodyLimit(
            LongPoll(django_application), max_bytes=settings.COUNTERSIGN_MAX_BODY_BYTES
        ),
        "websocket": AllowedHostsOriginValidator(
            AuthMiddlewareStack(URLRouter(websocket_urlpatterns))
        ),
    }
)
