"""What can go wrong with the local stack, each with the way out."""

from gatemesh_common.errors import GatemeshError


class MeshError(GatemeshError):
    """The local stack cannot go on; says what is wrong and what to do about it."""

    def __init__(self, reason: str, cure: str) -> None:
        super().__init__(f"{reason}\n  what to do: {cure}")
        self.reason = reason
        self.cure = cure


class ProgramFailedError(MeshError):
    """A program of the stack ended or never became ready; carries the end of its log."""


class AlreadyRunningError(MeshError):
    """Another `./mesh` holds the same state folder."""

    def __init__(self, holder_pid: int | None, folder: str) -> None:
        holder = "another process" if holder_pid is None else f"process {holder_pid}"
        super().__init__(
            f"the state folder {folder} is in use by {holder}",
            "stop that stack with `./mesh down`, or set GATEMESH_STATE to another folder",
        )
        self.holder_pid = holder_pid
