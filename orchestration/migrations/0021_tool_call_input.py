"""Tell recorded calls apart by the whole of their input."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("orchestration", "0020_page_indexes"),
    ]

    operations = [
        migrations.AddField(
            model_name="toolcall",
            name="input_digest",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
    ]
