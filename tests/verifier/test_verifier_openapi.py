"""The HTTP service fuzzed from its own OpenAPI schema: valid requests and broken ones, answered as it promises."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, settings

from maspo_rl.config.verifier import VerifierConfig
from maspo_rl.verifier.service import create_app

app = create_app(VerifierConfig(deadline_s=2.0))
schema = schemathesis.openapi.from_dict(app.openapi())


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(app, raise_server_exceptions=False) as running:
        yield running


@schema.parametrize()
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_every_answer_is_as_the_schema_promises(client: TestClient, case: schemathesis.Case) -> None:
    request = case.as_transport_kwargs(base_url="http://verifier")
    request.pop("cookies", None)
    case.validate_response(client.request(**request), headers=request["headers"])
