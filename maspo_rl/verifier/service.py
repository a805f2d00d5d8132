"""The verifier over HTTP: `POST /verify`, `GET /health`, `GET /metrics`, and an OpenAPI schema at `/openapi.json`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field

from maspo_rl.config.verifier import UNNAMED_DATASET, VerifierConfig
from maspo_rl.types import Label
from maspo_rl.verifier.files import as_row
from maspo_rl.verifier.verifier import Question, Verifier

BODY_DEADLINE_S = 30.0
MOST_ITEMS = 1024
_REFUSALS = {
    400: "The body could not be read",
    408: "The body did not arrive in time",
    413: "The body is too large",
    429: "Too many judgements are pending",
}


class Item(BaseModel):
    """One response and the gold answer of its problem."""

    model_config = ConfigDict(extra="forbid", strict=True)
    output: str = Field(description="The response, thinking included")
    gold: str | int | float = Field(description="The right answer")
    dataset: str = Field(UNNAMED_DATASET, description="Names the extraction rules of the configuration")
    truncated: bool = Field(False, description="The response was cut off by a length limit")


class VerifyRequest(BaseModel):
    """Items that are judged together, answered in their order."""

    model_config = ConfigDict(extra="forbid", strict=True)
    items: list[Item] = Field(min_length=1, max_length=MOST_ITEMS)


class ItemVerdict(BaseModel):
    verdict: Label
    reward: float | None = Field(description="null: not judged, to be left out and never counted as wrong")
    extracted: str | None
    reason: str
    seconds: float


class VerifyResponse(BaseModel):
    verdicts: list[ItemVerdict]


class AsciiJSONResponse(JSONResponse):
    """JSON in ASCII, which can carry back any string that came in, lone surrogates included."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content).encode("ascii")


class _LimitedRequest(Request):
    """A request whose body must arrive within a deadline and a size."""

    async def stream(self) -> AsyncGenerator[bytes, None]:
        most_bytes, received = self.app.state.most_bytes, 0
        try:
            async with asyncio.timeout(BODY_DEADLINE_S):
                async for chunk in super().stream():
                    received += len(chunk)
                    if received > most_bytes:
                        detail = f"the body is over {most_bytes} bytes; send fewer items"
                        raise HTTPException(413, detail, {"connection": "close"})
                    yield chunk
        except TimeoutError as error:
            raise HTTPException(408, f"the body did not arrive within {BODY_DEADLINE_S:.0f} s") from error


class _LimitedRoute(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def limited(request: Request) -> Response:
            return await handler(_LimitedRequest(request.scope, request.receive))

        return limited


def create_app(config: VerifierConfig) -> FastAPI:
    """The application, with workers of its own that live as long as it does."""
    config.check()
    verifier = Verifier(config)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        verifier.start()
        yield
        await asyncio.to_thread(verifier.close)

    app = FastAPI(title="maspo_rl verifier", lifespan=lifespan, default_response_class=AsciiJSONResponse)
    app.state.most_bytes = config.max_body_bytes
    app.router.route_class = _LimitedRoute

    @app.exception_handler(RequestValidationError)
    async def refuse(_: Request, error: RequestValidationError) -> Response:
        problems = [{name: each[name] for name in ("loc", "msg", "type")} for each in error.errors()[:10]]
        return AsciiJSONResponse({"detail": problems}, 422)

    @app.post("/verify", responses={code: {"description": text} for code, text in _REFUSALS.items()})
    async def verify(request: VerifyRequest) -> VerifyResponse:
        """Judge responses. The verdicts have the order of the items."""
        if verifier.pending + len(request.items) > config.max_pending:
            raise HTTPException(429, "too many judgements are pending; try again later", {"retry-after": "1"})
        questions = [Question(item.output, str(item.gold), item.dataset, item.truncated) for item in request.items]
        verdicts = await asyncio.gather(*(verifier.judge(question) for question in questions))
        return VerifyResponse(verdicts=[ItemVerdict(**as_row(verdict)) for verdict in verdicts])

    @app.get("/health")
    async def health() -> dict[str, int | str]:
        """Whether the service answers, and with how many live workers."""
        return {"status": "ok", "workers": len(verifier.process_ids()), "pending": verifier.pending}

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> str:
        """Counters in Prometheus' text format."""
        lines = ["# TYPE maspo_rl_verifier_total counter"]
        lines += [f'maspo_rl_verifier_total{{event="{name}"}} {count}' for name, count in verifier.counts().items()]
        lines += ["# TYPE maspo_rl_verifier_pending gauge", f"maspo_rl_verifier_pending {verifier.pending}"]
        return "\n".join(lines) + "\n"

    return app


def serve(config: VerifierConfig) -> None:
    """Serve until interrupted, on `config.host` (loopback by default) and `config.port`."""
    uvicorn.run(create_app(config), host=config.host, port=config.port, log_level="warning")
