"""Addresses are resolved once for all arguments of a kind, and say what the routes say."""

from __future__ import annotations

import pytest
from django.urls import NoReverseMatch, reverse

from dashboard.places import address


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("overview", ()),
        ("board", ("zq-1-qz",)),
        ("board", ("12",)),
        ("task", ("zq-1-qz", 970000079)),
        ("band", ("shop", 7, 0)),
        ("agent", ("night shift ä{0}",)),
        ("wiki_page", ("shop", "{1}%7B")),
    ],
)
def test_address_is_what_the_routes_say(name: str, arguments: tuple[object, ...]) -> None:
    expected = reverse(f"dashboard:{name}", args=[str(one) for one in arguments])
    assert [address(name, *arguments) for _ in range(2)] == [expected] * 2


@pytest.mark.parametrize(("name", "arguments"), [("decision", ("ten",)), ("board", ("",))])
def test_what_no_route_takes_is_refused(name: str, arguments: tuple[object, ...]) -> None:
    with pytest.raises(NoReverseMatch):
        address(name, *arguments)
