"""Let no two agents have names that differ in case only."""

from __future__ import annotations

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps


def fold_names(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Fold each name; of two that differ in case only the later one keeps its number with it."""
    seen: set[str] = set()
    for row in apps.get_model("orchestration", "Agent").objects.order_by("pk"):
        folded = row.name.casefold()
        row.folded_name = f"{folded}#{row.pk}" if folded in seen else folded
        seen.add(folded)
        row.save(update_fields=["folded_name"])


class Migration(migrations.Migration):
    dependencies = [("orchestration", "0014_verification_finding_key")]

    operations = [
        migrations.AddField(
            model_name="agent",
            name="folded_name",
            field=models.CharField(editable=False, max_length=360, null=True),
        ),
        migrations.RunPython(fold_names, migrations.RunPython.noop),
        migrations.AlterField(
            model_name="agent",
            name="folded_name",
            field=models.CharField(editable=False, max_length=360, unique=True),
        ),
    ]
