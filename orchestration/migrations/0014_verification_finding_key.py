from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("orchestration", "0013_sealed_channels"),
    ]

    operations = [
        migrations.AddField(
            model_name="verification",
            name="finding_key",
            field=models.CharField(blank=True, default="", max_length=64),
        ),
    ]
