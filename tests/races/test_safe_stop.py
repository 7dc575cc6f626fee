"""A safe stop against what is written at the same moment."""

from __future__ import annotations

import pytest

from orchestration.errors import Conflict
from orchestration.models import Experience
from orchestration.services.integrity import stop_safely
from orchestration.services.integrity_looks import FaultKind, IntegrityFault
from orchestration.services.knowledge import write_experience
from orchestration.services.lookups import lock_project
from orchestration.services.work import SYSTEM, unit_of_work
from tests.factories import new_project
from tests.races.contest import SIR, on_postgres, race

pytestmark = on_postgres
FAULT = IntegrityFault(FaultKind.ARTIFACT, "artifact:1", "planted")


def test_what_is_written_while_a_project_stops_is_refused() -> None:
    project = new_project()

    def stop() -> None:
        with unit_of_work(SYSTEM) as work:
            stop_safely(work, lock_project(project.pk), [FAULT], source="test")

    _, rival = race(stop, lambda: write_experience(project=project, title="x", body="y", actor=SIR))
    with pytest.raises(Conflict):
        rival.result()
    assert not Experience.objects.exists()
