"""Delivery archives (immutable), changelog entries, stale consumers, and the links of fixes."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

TABLE = "orchestration_deliveryarchive"


def create_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Refuse every UPDATE and DELETE of an archive, as for every other append-only table."""
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
    """What the method keeps of finished work."""

    dependencies = [
        ("orchestration", "0007_tool_call_ids"),
    ]

    operations = [
        migrations.CreateModel(
            name="ChangelogEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("title", models.CharField(max_length=300)),
                ("body", models.TextField()),
                ("created_at", models.DateTimeField()),
                ("written_at", models.DateTimeField(blank=True, null=True)),
                ("tries", models.PositiveSmallIntegerField(default=0)),
                ("problem", models.CharField(blank=True, default="", max_length=300)),
            ],
            options={
                "ordering": ("pk",),
            },
        ),
        migrations.CreateModel(
            name="DeliveryArchive",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField(default=1)),
                (
                    "kind",
                    models.CharField(
                        choices=[("archive", "archive"), ("waiver", "waiver")], max_length=10
                    ),
                ),
                ("has_exceptions", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "ordering": ("pk",),
            },
        ),
        migrations.CreateModel(
            name="HeldResult",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("token", models.PositiveIntegerField()),
                ("actor", models.CharField(max_length=140)),
                ("is_workers", models.BooleanField(default=False)),
                ("document", models.JSONField(default=dict)),
                ("digest", models.CharField(blank=True, default="", max_length=64)),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "ordering": ("pk",),
            },
        ),
        migrations.CreateModel(
            name="StaleConsumer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("stale", "stale"),
                            ("verified", "verified"),
                            ("failed", "failed"),
                            ("unchecked", "unchecked"),
                        ],
                        max_length=10,
                    ),
                ),
                ("note", models.CharField(blank=True, default="", max_length=300)),
                ("created_at", models.DateTimeField()),
                ("settled_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "ordering": ("pk",),
            },
        ),
        migrations.AddField(
            model_name="experience",
            name="digest",
            field=models.CharField(blank=True, default="", max_length=64),
        ),
        migrations.AddField(
            model_name="task",
            name="fixes",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="fix_tasks",
                to="orchestration.defect",
            ),
        ),
        migrations.AddConstraint(
            model_name="experience",
            constraint=models.UniqueConstraint(
                condition=models.Q(("digest", ""), _negated=True),
                fields=("project", "digest"),
                name="experience_digest_unique",
            ),
        ),
        migrations.AddField(
            model_name="changelogentry",
            name="project",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="changelog_entries",
                to="orchestration.project",
            ),
        ),
        migrations.AddField(
            model_name="deliveryarchive",
            name="document",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="orchestration.artifact",
            ),
        ),
        migrations.AddField(
            model_name="deliveryarchive",
            name="markdown",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="orchestration.artifact",
            ),
        ),
        migrations.AddField(
            model_name="deliveryarchive",
            name="project",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="delivery_archives",
                to="orchestration.project",
            ),
        ),
        migrations.AddField(
            model_name="deliveryarchive",
            name="task",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="delivery_archives",
                to="orchestration.task",
            ),
        ),
        migrations.AddField(
            model_name="changelogentry",
            name="archive",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="changelog_entry",
                to="orchestration.deliveryarchive",
            ),
        ),
        migrations.AddField(
            model_name="heldresult",
            name="assignment",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="held_result",
                to="orchestration.assignment",
            ),
        ),
        migrations.AddField(
            model_name="heldresult",
            name="project",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="held_results",
                to="orchestration.project",
            ),
        ),
        migrations.AddField(
            model_name="staleconsumer",
            name="artifact",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="stale_consumers",
                to="orchestration.artifact",
            ),
        ),
        migrations.AddField(
            model_name="staleconsumer",
            name="check_task",
            field=models.OneToOneField(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="rechecks",
                to="orchestration.task",
            ),
        ),
        migrations.AddField(
            model_name="staleconsumer",
            name="replaced",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="orchestration.artifact",
            ),
        ),
        migrations.AddField(
            model_name="staleconsumer",
            name="task",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="stale_reads",
                to="orchestration.task",
            ),
        ),
        migrations.AddIndex(
            model_name="deliveryarchive",
            index=models.Index(fields=["project", "id"], name="archive_project_idx"),
        ),
        migrations.AddConstraint(
            model_name="deliveryarchive",
            constraint=models.UniqueConstraint(
                fields=("task", "number"), name="archive_number_unique"
            ),
        ),
        migrations.AddIndex(
            model_name="changelogentry",
            index=models.Index(
                condition=models.Q(("written_at__isnull", True)),
                fields=["project", "id"],
                name="changelog_unwritten_idx",
            ),
        ),
        migrations.AddConstraint(
            model_name="staleconsumer",
            constraint=models.UniqueConstraint(
                fields=("artifact", "task"), name="stale_consumer_unique"
            ),
        ),
        migrations.RunPython(create_triggers, drop_triggers),
    ]
