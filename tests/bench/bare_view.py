"""The yardstick for claims: a bare DRF view that does the same two writes, and nothing else.

It takes an assignment and its task as a claim does, in one transaction, of the same tables of the
same database; without tokens, checks, locks, events, hints or wake-ups. uvicorn serves it.
"""

from __future__ import annotations

import os
from datetime import timedelta

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.conf import settings
from django.core.asgi import get_asgi_application
from django.db import transaction
from django.urls import path
from django.utils import timezone
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from orchestration.models import Assignment, Task

LEASE = timedelta(minutes=15)


class BareClaimView(APIView):
    """Claim a task with two updates."""

    authentication_classes = ()
    permission_classes = (AllowAny,)
    throttle_classes = ()

    def post(self, request: Request, task: int) -> Response:
        """Take the lease and move the task."""
        now = timezone.now()
        with transaction.atomic():
            taken = Assignment.objects.filter(task=task, status="queued").update(
                status="leased", worker="bare", leased_at=now, lease_expires_at=now + LEASE
            )
            Task.objects.filter(pk=task, status="pending").update(status="claimed", updated_at=now)
        return Response({"task": task, "taken": taken})


urlpatterns = [path("bare/<int:task>", BareClaimView.as_view())]
settings.ROOT_URLCONF = __name__
settings.MIDDLEWARE = []
application = get_asgi_application()
