"""Mail, conversations, handshakes and shared documents, whose versions are immutable."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

TABLE = "orchestration_shareddocumentversion"


def create_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Refuse every UPDATE and DELETE of a version, as for every other append-only table."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            f"CREATE TRIGGER {TABLE}_immutable BEFORE UPDATE OR DELETE ON {TABLE} "
            "FOR EACH ROW EXECUTE FUNCTION orchestration_refuse_change()"
        )
        return
    for verb in ("UPDATE", "DELETE"):
        schema_editor.execute(
            f"CREATE TRIGGER {TABLE}_no_{verb.lower()} BEFORE {verb} ON {TABLE} "
            f"BEGIN SELECT RAISE(ABORT, '{TABLE} rows are immutable'); END"
        )


def drop_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Take the triggers away again, to migrate backwards."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(f"DROP TRIGGER {TABLE}_immutable ON {TABLE}")
        return
    for verb in ("update", "delete"):
        schema_editor.execute(f"DROP TRIGGER {TABLE}_no_{verb}")


class Migration(migrations.Migration):
    dependencies = [
        ("orchestration", "0004_agents_work_index"),
    ]

    operations = [
        migrations.AddField(
            model_name="assignment",
            name="corrections",
            field=models.JSONField(blank=True, default=list),
        ),
        migrations.CreateModel(
            name="Conversation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "mode",
                    models.CharField(
                        choices=[
                            ("plain", "plain"),
                            ("query", "query"),
                            ("delegation", "delegation"),
                            ("negotiation", "negotiation"),
                            ("co_creation", "co_creation"),
                        ],
                        default="plain",
                        max_length=20,
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("open", "open"),
                            ("awaiting_sir", "awaiting_sir"),
                            ("closed", "closed"),
                        ],
                        default="open",
                        max_length=20,
                    ),
                ),
                (
                    "complexity",
                    models.CharField(
                        blank=True,
                        choices=[("low", "low"), ("medium", "medium"), ("high", "high")],
                        default="",
                        max_length=20,
                    ),
                ),
                ("round", models.PositiveSmallIntegerField(default=0)),
                ("accepted_by", models.JSONField(blank=True, default=list)),
                ("outcome", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField()),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="conversations",
                        to="orchestration.project",
                    ),
                ),
                (
                    "task",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="conversations",
                        to="orchestration.task",
                    ),
                ),
            ],
            options={
                "ordering": ("pk",),
            },
        ),
        migrations.CreateModel(
            name="Mail",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("message_id", models.CharField(max_length=200, unique=True)),
                ("digest", models.CharField(max_length=64)),
                (
                    "type",
                    models.CharField(
                        choices=[
                            ("inform", "inform"),
                            ("request", "request"),
                            ("reply", "reply"),
                            ("task_request", "task_request"),
                            ("intent_confirmation", "intent_confirmation"),
                            ("intent_ack", "intent_ack"),
                            ("execution_start", "execution_start"),
                        ],
                        default="inform",
                        max_length=20,
                    ),
                ),
                ("sender", models.CharField(max_length=140)),
                ("parts", models.JSONField(blank=True, default=list)),
                ("metadata", models.JSONField(blank=True, default=dict)),
                ("details", models.JSONField(blank=True, default=dict)),
                ("assertions", models.JSONField(blank=True, default=list)),
                (
                    "complexity",
                    models.CharField(
                        blank=True,
                        choices=[("low", "low"), ("medium", "medium"), ("high", "high")],
                        default="",
                        max_length=20,
                    ),
                ),
                ("expects_reply", models.BooleanField(default=False)),
                ("round", models.PositiveSmallIntegerField(default=0)),
                ("created_at", models.DateTimeField()),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="mail",
                        to="orchestration.conversation",
                    ),
                ),
                (
                    "in_reply_to",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="replies",
                        to="orchestration.mail",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="mail",
                        to="orchestration.project",
                    ),
                ),
                (
                    "sender_agent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="sent_mail",
                        to="orchestration.agent",
                    ),
                ),
                (
                    "task",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="mail",
                        to="orchestration.task",
                    ),
                ),
            ],
            options={
                "ordering": ("pk",),
            },
        ),
        migrations.AddField(
            model_name="conversation",
            name="proposal",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="orchestration.mail",
            ),
        ),
        migrations.CreateModel(
            name="MailRecipient",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=140)),
                (
                    "agent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="received_mail",
                        to="orchestration.agent",
                    ),
                ),
                (
                    "mail",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="recipients",
                        to="orchestration.mail",
                    ),
                ),
            ],
            options={
                "ordering": ("pk",),
            },
        ),
        migrations.CreateModel(
            name="SharedDocument",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                ("version", models.PositiveIntegerField(default=1)),
                ("created_at", models.DateTimeField()),
                ("updated_at", models.DateTimeField()),
                (
                    "task",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="shared_documents",
                        to="orchestration.task",
                    ),
                ),
            ],
            options={
                "ordering": ("name",),
            },
        ),
        migrations.CreateModel(
            name="SharedDocumentVersion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("version", models.PositiveIntegerField()),
                ("content", models.TextField()),
                ("sha256", models.CharField(max_length=64)),
                ("author", models.CharField(max_length=140)),
                ("change_note", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField()),
                (
                    "document",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="versions",
                        to="orchestration.shareddocument",
                    ),
                ),
            ],
            options={
                "ordering": ("version",),
            },
        ),
        migrations.CreateModel(
            name="Handshake",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("token", models.PositiveIntegerField()),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("awaiting_spawner", "awaiting_spawner"),
                            ("awaiting_auditor", "awaiting_auditor"),
                            ("awaiting_sir", "awaiting_sir"),
                            ("confirmed", "confirmed"),
                            ("confirmed_with_correction", "confirmed_with_correction"),
                            ("rejected", "rejected"),
                            ("void", "void"),
                        ],
                        max_length=30,
                    ),
                ),
                ("due_at", models.DateTimeField(blank=True, null=True)),
                ("due_seconds", models.FloatField(blank=True, null=True)),
                ("corrections", models.JSONField(blank=True, default=list)),
                ("answered_by", models.CharField(blank=True, default="", max_length=140)),
                ("answered_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField()),
                (
                    "assignment",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="handshakes",
                        to="orchestration.assignment",
                    ),
                ),
                (
                    "task",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="handshakes",
                        to="orchestration.task",
                    ),
                ),
                (
                    "mail",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="handshake",
                        to="orchestration.mail",
                    ),
                ),
            ],
            options={
                "ordering": ("pk",),
                "indexes": [
                    models.Index(fields=["assignment", "token"], name="handshake_lease_idx"),
                    models.Index(
                        condition=models.Q(
                            ("status__in", ["awaiting_auditor", "awaiting_sir", "awaiting_spawner"])
                        ),
                        fields=["id"],
                        name="handshake_open_idx",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "status__in",
                                [
                                    "awaiting_spawner",
                                    "awaiting_auditor",
                                    "awaiting_sir",
                                    "confirmed",
                                    "confirmed_with_correction",
                                    "rejected",
                                    "void",
                                ],
                            )
                        ),
                        name="handshake_status_known",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(
                            ("status__in", ["awaiting_auditor", "awaiting_sir", "awaiting_spawner"])
                        ),
                        fields=("assignment",),
                        name="handshake_one_open",
                    ),
                ],
            },
        ),
        migrations.AddIndex(
            model_name="conversation",
            index=models.Index(
                condition=models.Q(("status", "awaiting_sir")),
                fields=["id"],
                name="conversation_sir_idx",
            ),
        ),
        migrations.AddConstraint(
            model_name="conversation",
            constraint=models.CheckConstraint(
                condition=models.Q(("status__in", ["open", "awaiting_sir", "closed"])),
                name="conversation_status_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="mailrecipient",
            constraint=models.UniqueConstraint(
                fields=("mail", "name"), name="mail_recipient_unique"
            ),
        ),
        migrations.AddConstraint(
            model_name="shareddocument",
            constraint=models.UniqueConstraint(
                fields=("task", "name"), name="shared_document_unique"
            ),
        ),
        migrations.AddConstraint(
            model_name="shareddocumentversion",
            constraint=models.UniqueConstraint(
                fields=("document", "version"), name="shared_document_version_unique"
            ),
        ),
        migrations.RunPython(create_triggers, drop_triggers),
    ]
