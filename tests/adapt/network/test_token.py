"""Tokens as JSON: garbage is no token."""

from typing import Any

import pytest

from braid.adapt.network.figures import INTAKES, SiteFigures
from braid.adapt.network.token import Token
from braid.errors import ModelError
from braid.planning.solution.sequenced import HeadPlan

TOKEN = Token(
    ("paris", 3),
    HeadPlan(1, (2, 0), (0, 1)),
    position=0,
    asked=1,
    cheapest=(2.5, 2, 1),
    figures=(SiteFigures("lyon", INTAKES, {"b": 7.0}, reached=1),),
)


@pytest.mark.parametrize("token", [TOKEN, Token.along(("lyon", 1), TOKEN.sequence, [0])])
def test_a_token_is_the_same_when_it_arrives(token: Token) -> None:
    assert Token.from_json(token.to_json(), 3) == token


@pytest.mark.parametrize(
    "change",
    [
        {"round": ["paris"]},
        {"sequence": [1, [2, 2], [0, 1]]},
        {"sequence": [1, [2, 3], [0, 1]]},
        {"sequence": [1, [2, 0], [0, 2]]},
        {"sequence": [1, [2.0, 0], [0, 1]]},
        {"position": 3},
        {"position": -1},
        {"position": 0.5},
        {"position": "0"},
        {"asked": 2},
        {"seeking": 1},
        {"cheapest": [2.5, 1, 0]},
        {"cheapest": [2.5, 2, 2]},
        {"cheapest": ["dear", 2, 1]},
        {"figures": [{"site": "paris"}]},
        {"figures": 7},
    ],
)
def test_garbage_is_no_token(change: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match="this is no token"):
        Token.from_json({**TOKEN.to_json(), **change}, 3)


@pytest.mark.parametrize("content", [None, 7, "token", [], {}])
def test_other_things_are_no_token(content: Any) -> None:
    with pytest.raises(ModelError, match="this is no token"):
        Token.from_json(content, 3)
