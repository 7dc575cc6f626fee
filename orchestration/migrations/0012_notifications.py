"""Notices, the channels out of the building, deliveries, and when Sir is reminded."""

from __future__ import annotations

from datetime import timedelta

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

REMINDED_AFTER = timedelta(days=1)


def remind_of_open_decisions(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Let items that were open before be reminded of like new ones, counted from their opening."""
    decisions = apps.get_model("orchestration", "Decision")
    rows = decisions.objects.filter(status="open", remind_at__isnull=True)
    rows.update(remind_at=models.F("created_at") + REMINDED_AFTER)


class Migration(migrations.Migration):
    dependencies = [
        ("orchestration", "0011_mail_read_marks"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Delivery",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("notice", "notice"), ("digest", "digest"), ("test", "test")],
                        max_length=20,
                    ),
                ),
                ("key", models.CharField(max_length=120, unique=True)),
                ("message_id", models.CharField(max_length=64)),
                ("due_at", models.DateTimeField()),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("claim", models.CharField(blank=True, default="", max_length=40)),
                ("claimed_until", models.DateTimeField(blank=True, null=True)),
                (
                    "result",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", ""),
                            ("sent", "sent"),
                            ("failed", "failed"),
                            ("dropped", "dropped"),
                        ],
                        default="",
                        max_length=20,
                    ),
                ),
                ("error", models.CharField(blank=True, default="", max_length=300)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("closed_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "ordering": ("pk",),
            },
        ),
        migrations.CreateModel(
            name="Notice",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "event",
                    models.CharField(
                        choices=[
                            ("opened", "opened"),
                            ("reminder", "reminder"),
                            ("deadline", "deadline"),
                            ("decided", "decided"),
                            ("expired", "expired"),
                            ("withdrawn", "withdrawn"),
                        ],
                        max_length=20,
                    ),
                ),
                ("round", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("spread_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "ordering": ("pk",),
            },
        ),
        migrations.CreateModel(
            name="NoticeRead",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("read_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.CreateModel(
            name="NotificationChannel",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("email", "email"),
                            ("apprise", "apprise"),
                            ("webhook", "webhook"),
                        ],
                        max_length=20,
                    ),
                ),
                ("name", models.CharField(max_length=80)),
                ("address", models.TextField()),
                ("address_hint", models.CharField(max_length=200)),
                ("secret", models.CharField(blank=True, default="", max_length=200)),
                ("old_secret", models.CharField(blank=True, default="", max_length=200)),
                ("old_secret_until", models.DateTimeField(blank=True, null=True)),
                ("is_p0_only", models.BooleanField(default=False)),
                ("has_digest", models.BooleanField(default=False)),
                ("digest_at", models.TimeField(blank=True, null=True)),
                ("time_zone", models.CharField(blank=True, default="", max_length=64)),
                ("language", models.CharField(default="en", max_length=10)),
                ("digested_on", models.DateField(blank=True, null=True)),
                ("is_enabled", models.BooleanField(default=True)),
                ("disabled_reason", models.CharField(blank=True, default="", max_length=200)),
                ("removed_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "ordering": ("pk",),
            },
        ),
        migrations.AddField(
            model_name="decision",
            name="is_deadline_told",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="decision",
            name="remind_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="decision",
            name="reminded",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddIndex(
            model_name="decision",
            index=models.Index(
                condition=models.Q(("status", "open")),
                fields=["remind_at"],
                name="decision_remind_idx",
            ),
        ),
        migrations.AddField(
            model_name="notice",
            name="decision",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="notices",
                to="orchestration.decision",
            ),
        ),
        migrations.AddField(
            model_name="delivery",
            name="notice",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="deliveries",
                to="orchestration.notice",
            ),
        ),
        migrations.AddField(
            model_name="noticeread",
            name="notice",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="reads",
                to="orchestration.notice",
            ),
        ),
        migrations.AddField(
            model_name="noticeread",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="notificationchannel",
            name="project",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="channels",
                to="orchestration.project",
            ),
        ),
        migrations.AddField(
            model_name="notificationchannel",
            name="user",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="delivery",
            name="channel",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="deliveries",
                to="orchestration.notificationchannel",
            ),
        ),
        migrations.AddIndex(
            model_name="notice",
            index=models.Index(
                condition=models.Q(("spread_at__isnull", True)),
                fields=["id"],
                name="notice_owed_idx",
            ),
        ),
        migrations.AddIndex(
            model_name="notice",
            index=models.Index(fields=["event", "created_at"], name="notice_event_idx"),
        ),
        migrations.AddConstraint(
            model_name="notice",
            constraint=models.UniqueConstraint(
                fields=("decision", "event", "round"), name="notice_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="noticeread",
            constraint=models.UniqueConstraint(
                fields=("notice", "user"), name="notice_read_unique"
            ),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(("result", "")), fields=["due_at"], name="delivery_owed_idx"
            ),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(("result", "failed")),
                fields=["closed_at"],
                name="delivery_failed_idx",
            ),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("closed_at__isnull", True), ("result", "")),
                    models.Q(models.Q(("result", ""), _negated=True), ("closed_at__isnull", False)),
                    _connector="OR",
                ),
                name="delivery_closed_has_time",
            ),
        ),
        migrations.RunPython(remind_of_open_decisions, migrations.RunPython.noop),
    ]
