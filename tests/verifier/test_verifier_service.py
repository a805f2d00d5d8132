"""The HTTP service: clear answers to anything, never a stall, never a 5xx."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from maspo_rl.config.verifier import VerifierConfig
from maspo_rl.verifier.service import create_app

RIGHT = {"output": "\\boxed{(x+1)^2}", "gold": "x^2+2x+1"}


@pytest.fixture(scope="module")
def app() -> FastAPI:
    return create_app(VerifierConfig(workers=2, deadline_s=2.0, max_pending=1500))


@pytest.fixture(scope="module")
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, raise_server_exceptions=False) as running:
        yield running


def test_verdicts_in_the_order_of_the_items(client: TestClient) -> None:
    items = [
        RIGHT,
        {"output": "\\boxed{4}", "gold": 5},
        {"output": "the answer is 0.5", "gold": 0.5},
        {**RIGHT, "gold": ""},
    ]
    answer = client.post("/verify", json={"items": items})
    assert answer.status_code == 200
    assert [row["verdict"] for row in answer.json()["verdicts"]] == ["correct", "wrong", "correct", "unparseable"]
    assert answer.json()["verdicts"][3]["reward"] is None


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 422),
        (b"\xff\xfe", 422),
        (b"[]", 422),
        (b'{"items": []}', 422),
        (b'{"items": [{"output": "x"}]}', 422),
        (b'{"items": [{"output": 5, "gold": "x"}]}', 422),
        (b'{"items": [{"output": "\\ud800"}]}', 422),
        (b'{"items": [{"output": "x", "gold": "x", "golt": 1}]}', 422),
        (b'{"items": [{"output": "x", "gold": ' + b"9" * 6000 + b"}]}", 400),
        (b'{"items": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400),
        (b" " * 10_000_000, 413),
    ],
)
def test_malformed_bodies_get_a_clear_answer(client: TestClient, body: bytes, status: int) -> None:
    answer = client.post("/verify", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status
    assert answer.json()["detail"]


def test_a_body_without_a_length_is_limited_too(client: TestClient) -> None:
    answer = client.post("/verify", content=(b" " * 65536 for _ in range(200)))
    assert answer.status_code == 413


def test_health_and_metrics(client: TestClient) -> None:
    client.post("/verify", json={"items": [RIGHT]})
    assert client.get("/health").json()["status"] == "ok"
    assert 'maspo_rl_verifier_total{event="correct"}' in client.get("/metrics").text


def test_two_hundred_clients_at_once(app: FastAPI, client: TestClient) -> None:
    """Some of them hostile: every one gets a verdict or a refusal, and the loop is never blocked."""

    async def ask(http: httpx.AsyncClient, number: int) -> tuple[int, Any]:
        hostile = number % 100 == 0
        output = f"\\boxed{{3!! + 9^{{9^{{9^{{{number + 9}}}}}}}}}" if hostile else f"\\boxed{{(x+{number})^2}}"
        answer = await http.post(
            "/verify", json={"items": [{"output": output, "gold": f"x^2+{2 * number}x+{number**2}"}]}
        )
        return answer.status_code, answer.json()

    async def run() -> list[tuple[int, Any]]:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://verifier", timeout=60) as http:
            return await asyncio.gather(*(ask(http, number) for number in range(200)))

    began = time.monotonic()
    answers = asyncio.run(run())
    assert time.monotonic() - began < 30
    for number, (status, body) in enumerate(answers):
        assert status == 200
        assert body["verdicts"][0]["verdict"] == ("timeout" if number % 100 == 0 else "correct")


def test_more_than_may_be_pending_is_refused(client: TestClient) -> None:
    items = [{"output": f"\\boxed{{(x+{n})^3}}", "gold": "x"} for n in range(1024)]

    with TestClient(create_app(VerifierConfig(workers=1, max_pending=100))) as small:
        answer = small.post("/verify", json={"items": items})
        assert answer.status_code == 429
        assert answer.headers["retry-after"]
        assert small.post("/verify", json={"items": items[:3]}).status_code == 200


def from_schema(schema: dict[str, Any], whole: dict[str, Any], chance: random.Random) -> Any:  # noqa: PLR0911
    """A value of an OpenAPI schema, or now and then one that breaks it."""
    if chance.random() < 0.08:
        return chance.choice([None, -1, 1e308, "", "\x00", "é\u202e", [], {}, True, [[[]]], "9" * 5000, float(2**70)])
    if "$ref" in schema:
        return from_schema(whole["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]], whole, chance)
    if "anyOf" in schema:
        return from_schema(chance.choice(schema["anyOf"]), whole, chance)
    kind = schema.get("type")
    if kind == "object":
        names = [name for name in schema["properties"] if name in schema.get("required", ()) or chance.random() < 0.5]
        if chance.random() < 0.05:
            names.pop()
        return {name: from_schema(schema["properties"][name], whole, chance) for name in names}
    if kind == "array":
        return [from_schema(schema["items"], whole, chance) for _ in range(chance.randint(0, 4))]
    if kind == "integer":
        return chance.randint(-(10**20), 10**20)
    if kind == "number":
        return chance.uniform(-1e9, 1e9)
    if kind == "boolean":
        return chance.random() < 0.5
    parts = ["\\boxed{", "}", "5", "x", "\\frac", "{", "$", "^", "½", "<think>", "</think>", " ", "(", ",", "\u0000"]
    return "".join(chance.choices(parts, k=chance.randint(0, 12)))


def test_fuzzed_from_its_own_schema(client: TestClient) -> None:
    schema = client.get("/openapi.json").json()
    chance = random.Random(20261130)
    statuses = set()
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            for _ in range(150 if body else 3):
                content = None if body is None else json.dumps(from_schema(body, schema, chance)).encode()
                answer = client.request(method, path, content=content, headers={"content-type": "application/json"})
                statuses.add(answer.status_code)
                assert answer.status_code in (200, 400, 422), (path, content, answer.text)
    assert statuses >= {200, 422}
    assert client.request("PUT", "/verify").status_code == 405
    assert client.get("/nowhere").status_code == 404
