"""Keep what was left of the timeout while a lease's clocks stand still."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("orchestration", "0002_immutability"),
    ]

    operations = [
        migrations.AddField(
            model_name="assignment",
            name="deadline_remaining_seconds",
            field=models.FloatField(blank=True, null=True),
        ),
    ]
