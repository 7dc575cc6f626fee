"""Seal what channels keep secret; rows from before held it as plain text."""

from __future__ import annotations

from collections.abc import Callable

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from orchestration.outbound.sealing import open_sealed, seal

SECRETS = ("address", "secret", "old_secret")


def rewrite(apps: StateApps, change: Callable[[str], str]) -> None:
    """Write each secret anew, row by row: there are at most some dozens."""
    for row in apps.get_model("orchestration", "NotificationChannel").objects.all():
        for name in SECRETS:
            setattr(row, name, change(getattr(row, name)))
        row.save(update_fields=SECRETS)


def seal_rows(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Encrypt them under the present SECRET_KEY."""
    rewrite(apps, seal)


def open_rows(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Give them back as text. Errors: SealBroken where SECRET_KEY was changed since."""
    rewrite(apps, open_sealed)


class Migration(migrations.Migration):
    dependencies = [("orchestration", "0012_notifications")]

    operations = [
        migrations.AlterField(
            model_name="notificationchannel",
            name="secret",
            field=models.TextField(blank=True, default=""),
        ),
        migrations.AlterField(
            model_name="notificationchannel",
            name="old_secret",
            field=models.TextField(blank=True, default=""),
        ),
        migrations.RunPython(seal_rows, open_rows),
    ]
