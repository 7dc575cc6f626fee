"""Sign-in: in, out, throttled, and never off to somewhere else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.cache import cache
from django.test import Client

from tests.dashboard.conftest import person

URL = "/accounts/login/"
GOOD = {"username": "vera", "password": "a good password"}
BAD = {"username": "vera", "password": "wrong"}


@pytest.fixture(autouse=True)
def clean_cache() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def vera(db: None) -> None:
    person("vera", "viewer")


def test_person_gets_in_and_out(vera: None, client: Client) -> None:
    assert client.post(f"{URL}?next=/audit/", GOOD)["Location"] == "/audit/"
    assert client.get("/audit/").status_code == 200
    assert client.post("/accounts/logout/")["Location"] == URL
    assert client.get("/audit/").status_code == 302


def test_wrong_password_says_so_and_names_nobody(vera: None, client: Client) -> None:
    known = client.post(URL, BAD)
    unknown = client.post(URL, {**BAD, "username": "nobody"})
    assert known.status_code == unknown.status_code == 200
    assert b'role="alert"' in known.content
    assert b"wrong" not in known.content.replace(b"went wrong", b"")


def test_sixth_try_has_to_wait_even_with_the_right_password(vera: None, client: Client) -> None:
    for _ in range(5):
        assert client.post(URL, BAD).status_code == 200
    answer = client.post(URL, GOOD)
    assert answer.status_code == 429
    assert answer["Retry-After"] == "300"
    assert b"Too many tries" in answer.content
    assert client.get("/audit/").status_code == 302


def test_strangers_failures_do_not_lock_out_another_address(vera: None, client: Client) -> None:
    for _ in range(6):
        client.post(URL, BAD, REMOTE_ADDR="203.0.113.7")
    assert client.post(URL, GOOD, REMOTE_ADDR="198.51.100.4").status_code == 302


def test_one_address_cannot_try_many_names(vera: None, client: Client) -> None:
    for number in range(20):
        client.post(URL, {**BAD, "username": f"name-{number}"})
    assert client.post(URL, GOOD).status_code == 429


def test_success_forgets_the_failures_before_it(vera: None, client: Client) -> None:
    for _ in range(2):
        for _ in range(4):
            client.post(URL, BAD)
        assert client.post(URL, GOOD).status_code == 302
        client.post("/accounts/logout/")


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "/\\evil.example"])
def test_sign_in_leads_nowhere_else(target: str, vera: None, client: Client) -> None:
    assert client.post(URL, {**GOOD, "next": target})["Location"] == "/"


def test_get_does_not_sign_out(vera: None, client: Client) -> None:
    client.post(URL, GOOD)
    assert client.get("/accounts/logout/").status_code == 405
    assert client.get("/audit/").status_code == 200
