"""Pages go over the wire compressed; what machines ask for does not."""

from __future__ import annotations

import gzip

from django.contrib.auth.models import User
from django.test import Client

from tests.factories import new_project

TAKES = {"Accept-Encoding": "gzip"}


def test_page_is_compressed_for_those_who_take_it(sir: User, sir_client: Client) -> None:
    new_project("packed")
    plain = sir_client.get("/projects/packed/")
    packed = sir_client.get("/projects/packed/", headers=TAKES)
    assert "Content-Encoding" not in plain
    assert packed["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in packed["Vary"]
    assert len(packed.content) < len(plain.content) / 2
    assert b"packed" in gzip.decompress(packed.content)


def test_answers_to_machines_are_left_alone(sir: User, sir_client: Client) -> None:
    for number in range(20):
        new_project(f"packed-{number}")
    answer = sir_client.get("/api/projects/", headers=TAKES)
    assert len(answer.content) > 2_000
    assert "Content-Encoding" not in answer
