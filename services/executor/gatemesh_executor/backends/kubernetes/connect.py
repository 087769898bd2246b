"""Where the cluster is and who we are there: a kubeconfig, or the pod we run in."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from gatemesh_common.errors import SettingsError
from gatemesh_executor.backends.kubernetes.api import Call

OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
LIBRARY_MISSING = "the Kubernetes backend needs its library: pip install 'gatemesh[kubernetes]'"


class LibraryConnection:
    """Sends through kubernetes-asyncio, which knows certificates, tokens and their renewal."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def send(self, call: Call, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        """Return the answer, its body unread."""
        headers = {"Accept": "application/json", "Content-Type": call.content_type}
        query = list(call.query)
        await self._client.update_params_for_auth(headers, query, ["BearerToken"])
        url = self._client.configuration.host + call.path
        response: aiohttp.ClientResponse = await self._client.rest_client.request(
            call.method,
            url,
            headers=headers,
            query_params=query,
            body=call.body,
            _preload_content=False,
            _request_timeout=timeout,
        )
        return response


@asynccontextmanager
async def connected(kubeconfig: Path | None) -> AsyncIterator[LibraryConnection]:
    """Give a connection to the cluster that the kubeconfig names, or that we run in.

    Raises:
        SettingsError: there is neither, or the library is not installed.
    """
    try:
        # Imported late: it brings some hundred modules that nobody else needs.
        from kubernetes_asyncio import config  # noqa: PLC0415
        from kubernetes_asyncio.client import ApiClient, Configuration  # noqa: PLC0415
    except ImportError as error:
        raise SettingsError(LIBRARY_MISSING) from error
    configuration = Configuration()
    try:
        if kubeconfig is None:
            config.load_incluster_config(client_configuration=configuration)
        else:
            await config.load_kube_config(str(kubeconfig), client_configuration=configuration)
    except (config.ConfigException, OSError) as error:
        raise SettingsError(
            f"GATEMESH_EXECUTOR_KUBECONFIG: no cluster can be reached by it ({error}); name a "
            "kubeconfig, or run the executor in a pod with a service account"
        ) from error
    async with ApiClient(configuration) as client:
        yield LibraryConnection(client)


def own_namespace(setting: str, file: Path = OWN_NAMESPACE) -> str:
    """Return the namespace of the setting, or the one of the pod we run in.

    Raises:
        SettingsError: neither is there.
    """
    if setting:
        return setting
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SettingsError(
            "GATEMESH_EXECUTOR_NAMESPACE: outside of a cluster it must name the namespace "
            "that the engines run in"
        ) from error
