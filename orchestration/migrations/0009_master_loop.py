"""The master loop: validation packages, control commands, and when a failed root is due again."""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

TABLE = "orchestration_controlcommand"
FUNCTION = "orchestration_refuse_change"


def create_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Refuse every UPDATE and DELETE of a control command."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            f"CREATE TRIGGER {TABLE}_immutable BEFORE UPDATE OR DELETE ON {TABLE} "
            f"FOR EACH ROW EXECUTE FUNCTION {FUNCTION}()"
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
        ("orchestration", "0008_archives"),
    ]

    operations = [
        migrations.CreateModel(
            name="ControlCommand",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "next_action",
                    models.CharField(
                        choices=[
                            ("RESTART_FROM_STEP_2", "RESTART_FROM_STEP_2"),
                            ("PROCEED_TO_NEXT_TASK", "PROCEED_TO_NEXT_TASK"),
                            ("TERMINATE_SUCCESS", "TERMINATE_SUCCESS"),
                            ("SUSPEND_FOR_HUMAN", "SUSPEND_FOR_HUMAN"),
                        ],
                        max_length=24,
                    ),
                ),
                ("context_for_step_2", models.JSONField(blank=True, null=True)),
                ("final_report", models.TextField(blank=True, null=True)),
                ("master_list_after", models.JSONField(default=dict)),
                ("is_list_partial", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "ordering": ("pk",),
            },
        ),
        migrations.CreateModel(
            name="ValidationPackage",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("attempt", models.PositiveIntegerField(default=1)),
                (
                    "verdict",
                    models.CharField(
                        choices=[
                            ("GO", "GO"),
                            ("NO-GO", "NO-GO"),
                            ("INDETERMINATE", "INDETERMINATE"),
                        ],
                        max_length=20,
                    ),
                ),
                (
                    "claimed",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("GO", "GO"),
                            ("NO-GO", "NO-GO"),
                            ("INDETERMINATE", "INDETERMINATE"),
                        ],
                        default="",
                        max_length=20,
                    ),
                ),
                (
                    "failure_class",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("check_failed", "check_failed"),
                            ("config_error", "config_error"),
                            ("environment", "environment"),
                            ("timeout", "timeout"),
                            ("lease_expired", "lease_expired"),
                            ("agent_failed", "agent_failed"),
                            ("contradicted", "contradicted"),
                            ("rejected_by_sir", "rejected_by_sir"),
                            ("cancelled_by_sir", "cancelled_by_sir"),
                            ("budget", "budget"),
                        ],
                        default="",
                        max_length=20,
                    ),
                ),
                ("root_cause", models.TextField(blank=True, default="")),
                ("body", models.JSONField(default=dict)),
                ("attachments", models.JSONField(blank=True, default=dict)),
                ("backend", models.CharField(max_length=20)),
                ("posted_by", models.CharField(blank=True, default="", max_length=140)),
                ("is_authoritative", models.BooleanField(default=False)),
                ("concluded_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "ordering": ("pk",),
            },
        ),
        migrations.AddField(
            model_name="task",
            name="awaits_verdict",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="task",
            name="replan_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="task",
            name="transient_failures",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="task",
            name="withholds_dependents",
            field=models.BooleanField(default=False),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                condition=models.Q(("replan_at__isnull", False)),
                fields=["replan_at"],
                name="task_replan_idx",
            ),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                condition=models.Q(("awaits_verdict", True)),
                fields=["project"],
                name="task_verdict_idx",
            ),
        ),
        migrations.AddField(
            model_name="controlcommand",
            name="project",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="control_commands",
                to="orchestration.project",
            ),
        ),
        migrations.AddField(
            model_name="controlcommand",
            name="task",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="control_commands",
                to="orchestration.task",
            ),
        ),
        migrations.AddField(
            model_name="validationpackage",
            name="agent",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                to="orchestration.agent",
            ),
        ),
        migrations.AddField(
            model_name="validationpackage",
            name="project",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="validation_packages",
                to="orchestration.project",
            ),
        ),
        migrations.AddField(
            model_name="validationpackage",
            name="task",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="validation_packages",
                to="orchestration.task",
            ),
        ),
        migrations.AddField(
            model_name="controlcommand",
            name="package",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                to="orchestration.validationpackage",
            ),
        ),
        migrations.AddConstraint(
            model_name="validationpackage",
            constraint=models.CheckConstraint(
                condition=models.Q(("verdict__in", ["GO", "NO-GO", "INDETERMINATE"])),
                name="package_verdict_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="controlcommand",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "next_action__in",
                        [
                            "RESTART_FROM_STEP_2",
                            "PROCEED_TO_NEXT_TASK",
                            "TERMINATE_SUCCESS",
                            "SUSPEND_FOR_HUMAN",
                        ],
                    )
                ),
                name="command_action_known",
            ),
        ),
        migrations.RunPython(create_triggers, drop_triggers),
    ]
