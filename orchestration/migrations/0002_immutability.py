"""Make audit rows, seals, locked blueprints and locked artifacts immutable, on both databases."""

from __future__ import annotations

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

TABLES = (
    "orchestration_auditevent",
    "orchestration_auditseal",
    "orchestration_blueprint",
    "orchestration_artifact",
    "orchestration_artifactcontent",
)
FUNCTION = "orchestration_refuse_change"


def create_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Refuse every UPDATE and DELETE on the append-only tables."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            f"CREATE FUNCTION {FUNCTION}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "RAISE EXCEPTION USING MESSAGE = TG_TABLE_NAME || ' rows are immutable', "
            "ERRCODE = 'integrity_constraint_violation'; END $$"
        )
        for table in TABLES:
            schema_editor.execute(
                f"CREATE TRIGGER {table}_immutable BEFORE UPDATE OR DELETE ON {table} "
                f"FOR EACH ROW EXECUTE FUNCTION {FUNCTION}()"
            )
        return
    for table in TABLES:
        for verb in ("UPDATE", "DELETE"):
            schema_editor.execute(
                f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{table} rows are immutable'); END"
            )


def drop_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Take the triggers away again, to migrate backwards."""
    if schema_editor.connection.vendor == "postgresql":
        for table in TABLES:
            schema_editor.execute(f"DROP TRIGGER {table}_immutable ON {table}")
        schema_editor.execute(f"DROP FUNCTION {FUNCTION}()")
        return
    for table in TABLES:
        for verb in ("update", "delete"):
            schema_editor.execute(f"DROP TRIGGER {table}_no_{verb}")


class Migration(migrations.Migration):
    """Immutability by trigger; the product never switches it off."""

    dependencies = [("orchestration", "0001_initial")]
    operations = [migrations.RunPython(create_triggers, drop_triggers)]
