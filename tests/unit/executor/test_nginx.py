"""Replacing the upstream file, and what nginx says."""

import asyncio
import sys
from pathlib import Path

import pytest

from gatemesh_executor.balancers.base import (
    BalancerRefusedError,
    BalancerUnavailableError,
    Server,
)
from gatemesh_executor.balancers.config import NginxSettings
from gatemesh_executor.balancers.nginx import Nginx, first_fault, replace_text, run_to_end

from .conftest import Time

ONE = Server("", "127.0.0.1:8000")


def nginx(folder: Path, **settings: object) -> Nginx:
    """Return one whose file holds one server, and whose master does not run."""
    (folder / "chat.servers").write_text(f"server {ONE.name};\n")
    facts = {"kind": "nginx", "upstream_file": folder / "chat.servers", "test": ("true",)}
    pid_file = folder / "none.pid"
    return Nginx(
        "edge",
        NginxSettings.model_validate({**facts, "pid_file": pid_file, **settings}),
        Time().pace,
    )


def test_a_file_is_replaced_with_its_mode_and_nothing_is_left(tmp_path: Path) -> None:
    """Nor does a link to it turn into a file."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    replace_text(link, "new")
    assert real.read_text() == "new"
    assert real.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real"]


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ("nginx: [warn] a\nnginx: [emerg] b in c:1\nnginx: test failed", "nginx: [emerg] b in c:1"),
        ("odd\n", "odd"),
        ("", "no word why"),
    ],
)
def test_the_line_at_fault_is_told(said: str, fault: str) -> None:
    """A report has room for one."""
    assert first_fault(said) == fault


async def test_a_command_does_not_outlive_its_caller() -> None:
    """A test that hangs is ended with its deadline."""
    assert await run_to_end((sys.executable, "-c", "print('x'); raise SystemExit(3)")) == (3, "x\n")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await run_to_end(("sleep", "1000"))


@pytest.mark.parametrize(
    ("settings", "kind", "named"),
    [
        ({}, BalancerUnavailableError, "pid_file .* names no running nginx"),
        ({"test": ("false",)}, BalancerUnavailableError, "refuses its configuration"),
        ({"test": ("/nowhere/nginx",)}, BalancerRefusedError, "set `test` to nginx's full path"),
        (
            {"test": ("sleep", "1000"), "deadline_s": 0.05},
            BalancerUnavailableError,
            "did not end in 0.05 s",
        ),
    ],
)
async def test_whatever_fails_leaves_the_file_as_it_was(
    tmp_path: Path, settings: dict[str, object], kind: type[Exception], named: str
) -> None:
    """Whoever reloads nginx next gets what ran before."""
    balancer = nginx(tmp_path, **settings)
    with pytest.raises(kind, match=named):
        await balancer.take_out(ONE)
    assert (tmp_path / "chat.servers").read_text() == f"server {ONE.name};\n"
    assert not (await balancer.look(ONE)).out


async def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    """With the name of the field."""
    balancer = nginx(tmp_path)
    (tmp_path / "chat.servers").unlink()
    with pytest.raises(BalancerUnavailableError, match="upstream_file"):
        await balancer.look(ONE)


async def test_a_server_without_a_line_names_the_way_out(tmp_path: Path) -> None:
    """The file is the operator's: no line is made up."""
    with pytest.raises(BalancerRefusedError, match=r"no line `server 127\.0\.0\.1:9;`"):
        await nginx(tmp_path).take_out(Server("", "127.0.0.1:9"))
