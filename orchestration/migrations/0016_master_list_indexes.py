import django.db.models.deletion
from django.db import migrations, models

FIRST_LOOKS = """
UPDATE orchestration_assessment SET traffic_of_id = (
    SELECT project_id FROM orchestration_task
    WHERE orchestration_task.id = orchestration_assessment.task_id AND parent_id IS NULL
) WHERE "trigger" = ''
"""


class Migration(migrations.Migration):
    dependencies = [
        ("orchestration", "0015_agent_folded_name"),
    ]

    operations = [
        migrations.AddField(
            model_name="assessment",
            name="traffic_of",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="traffic",
                to="orchestration.project",
            ),
        ),
        migrations.AddIndex(
            model_name="assessment",
            index=models.Index(
                condition=models.Q(("traffic_of__isnull", False)),
                fields=["traffic_of", "stage", "outcome", "task"],
                name="assessment_traffic_idx",
            ),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                condition=models.Q(("kind", "task"), ("parent__isnull", True)),
                fields=["project", "status", "number"],
                name="task_master_idx",
            ),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                condition=models.Q(("status__in", ["done", "cancelled"]), _negated=True),
                fields=["project", "status"],
                name="task_open_idx",
            ),
        ),
        migrations.RunSQL(FIRST_LOOKS, migrations.RunSQL.noop),
    ]
