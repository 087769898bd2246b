"""A Kubernetes node whose pods are programs of supervisord, called like their pods."""

import asyncio

from tests.contract.executor.kube_node import Node

from gatemesh_executor.backends.kubernetes.api import KubeApi, Object
from gatemesh_mesh.supervision import Supervision


class ProgramNode(Node):
    """Starts and stops real engines as pods come and go."""

    def __init__(self, api: KubeApi, name: str, supervision: Supervision) -> None:
        super().__init__(api, name)
        self._supervision = supervision

    async def begin(self, name: str) -> None:
        """Start the program; one that runs goes on."""
        await asyncio.to_thread(self._supervision.start_program, name)

    async def end(self, pod: Object) -> bool:
        """Ask the program to leave, and wait until it has."""
        assert await asyncio.to_thread(self._supervision.stop_program, pod["metadata"]["name"])
        return False
