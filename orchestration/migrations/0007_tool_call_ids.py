"""Name each recorded call as its harness does, and note which session of it holds the work."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("orchestration", "0006_knowledge"),
    ]

    operations = [
        migrations.AddField(
            model_name="assignment",
            name="harness",
            field=models.JSONField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="toolcall",
            name="call_id",
            field=models.CharField(blank=True, db_default="", default="", max_length=200),
        ),
        migrations.AddConstraint(
            model_name="toolcall",
            constraint=models.UniqueConstraint(
                condition=models.Q(("call_id", ""), _negated=True),
                fields=("assignment", "call_id"),
                name="tool_call_once",
            ),
        ),
    ]
