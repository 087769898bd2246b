"""Paths and their handlers."""

from aiohttp import web

from gatemesh_engine_sim.dev_routes import dev_routes
from gatemesh_engine_sim.generate_routes import Generator
from gatemesh_engine_sim.plain_routes import PlainRoutes, vllm_errors
from gatemesh_engine_sim.service import Service

MAX_BODY_BYTES = 64 * 1024 * 1024


def build_application(service: Service) -> web.Application:
    """The whole HTTP surface of one engine."""
    generate, plain = Generator(service), PlainRoutes(service)
    app = web.Application(middlewares=[vllm_errors], client_max_size=MAX_BODY_BYTES)
    app.add_routes(
        [
            web.post("/v1/chat/completions", generate.chat),
            web.post("/v1/completions", generate.completions),
            web.post("/v1/responses", generate.responses),
            web.post("/v1/messages", generate.messages),
            web.post("/v1/embeddings", plain.embeddings),
            web.get("/v1/models", plain.models),
            web.get("/health", plain.health),
            web.get("/ping", plain.health),
            web.post("/ping", plain.health),
            web.get("/load", plain.load),
            web.get("/version", plain.version),
            web.get("/metrics", plain.metrics),
            web.post("/tokenize", plain.tokenize),
            web.post("/detokenize", plain.detokenize),
            web.get("/sim/faults", plain.list_faults),
            web.get("/sim/fault", plain.get_fault),
            web.post("/sim/fault", plain.set_fault),
            web.delete("/sim/fault", plain.clear_fault),
            *dev_routes(service),
        ]
    )
    return app
