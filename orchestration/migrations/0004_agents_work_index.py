"""Find at once whether an agent ever held work in a project."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("orchestration", "0003_deadline_clock"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="assignment",
            index=models.Index(
                condition=models.Q(("backend", "external"), ("leased_at__isnull", False)),
                fields=["project"],
                name="assignment_agents_idx",
            ),
        ),
    ]
