"""Count what a defect reaches; the list of it is bounded."""

from __future__ import annotations

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps


def count_impact(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Count what older defects list: all of it."""
    for row in apps.get_model("orchestration", "Defect").objects.exclude(impact=[]).iterator():
        row.impact_total = len(row.impact)
        row.save(update_fields=["impact_total"])


class Migration(migrations.Migration):
    dependencies = [("orchestration", "0016_master_list_indexes")]

    operations = [
        migrations.AddField(
            model_name="defect",
            name="impact_total",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.RunPython(count_impact, migrations.RunPython.noop),
    ]
