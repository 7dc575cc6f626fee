"""Read-only pages of every row, for an operator who looks for a fault."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from orchestration.models import IdempotencyRecord

SECRET_FIELDS = ("token_hash", "lease_token")
SECRET_ROWS = (IdempotencyRecord,)
"""Rows that nobody is shown: a kept answer may hold a lease token."""


if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Model]
else:
    # The stub is generic, the class is not.
    ModelAdmin = admin.ModelAdmin


class ReadOnlyAdmin(ModelAdmin):
    """Show rows by key; add, change and delete are refused to everybody."""

    exclude = SECRET_FIELDS
    list_per_page = 50
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse."""
        return False


for model in apps.get_app_config("orchestration").get_models():
    if model not in SECRET_ROWS:
        admin.site.register(model, ReadOnlyAdmin)
