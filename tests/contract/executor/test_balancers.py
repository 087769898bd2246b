"""What every load balancer promises, run against the fake, a real HAProxy and a real nginx."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import pytest

from gatemesh_executor.balancers.base import (
    BalancerRefusedError,
    BalancerUnavailableError,
    Server,
)
from gatemesh_executor.balancers.haproxy import Haproxy

from .balancer_rigs import BalancerRig, FakeRig, HaproxyRig, NginxRig, needs
from .streaming_engines import StreamingEngine, Traffic, clients, running_engines

pytestmark = pytest.mark.integration


class BalancerContract:
    """Needs a fixture `rig` with two servers in rotation."""

    async def test_out_and_back(self, rig: BalancerRig) -> None:
        """Each may come twice, and each is read back."""
        one, other = rig.servers
        for _ in range(2):
            await rig.balancer.take_out(one)
            assert (await rig.balancer.look(one)).out
        assert not (await rig.balancer.look(other)).out
        for _ in range(2):
            await rig.balancer.put_back(one, 1.0)
            assert not (await rig.balancer.look(one)).out

    async def test_weights_are_shares_of_the_full_one(self, rig: BalancerRig) -> None:
        """Condition C shifts traffic by them; 0.001 is not none."""
        one, _ = rig.servers
        for share, weight in ((0.3, 30), (1.0, 100), (0.001, 1)):
            await rig.balancer.set_weight(one, share)
            found = await rig.balancer.look(one)
            assert (found.out, found.weight, found.full_weight) == (False, weight, 100)

    async def test_a_weight_puts_nothing_back(self, rig: BalancerRig) -> None:
        """What is out stays out."""
        one, _ = rig.servers
        await rig.balancer.take_out(one)
        await rig.balancer.set_weight(one, 0.5)
        assert (await rig.balancer.look(one)).out

    async def test_back_comes_with_its_weight(self, rig: BalancerRig) -> None:
        """A slow start must not begin with full traffic."""
        one, _ = rig.servers
        await rig.balancer.take_out(one)
        await rig.balancer.put_back(one, 0.3)
        found = await rig.balancer.look(one)
        assert (found.out, found.weight) == (False, 30)

    async def test_what_a_reload_forgot_is_asserted_again(self, rig: BalancerRig) -> None:
        """After any reload the same holds as before; what holds already costs nothing."""
        one, other = rig.servers
        wished = {one: 0.0, other: 0.5}
        await rig.balancer.assert_again(wished)
        await rig.reload()
        await rig.balancer.assert_again(wished)
        assert (await rig.balancer.look(one)).out
        assert (await rig.balancer.look(other)).weight == 50
        assert await rig.balancer.assert_again(wished) == ()

    async def test_all_that_differs_is_told(self, rig: BalancerRig) -> None:
        """Operators see in the log what was corrected."""
        one, other = rig.servers
        await rig.balancer.assert_again({one: 0.0, other: 1.0})
        assert set(await rig.balancer.assert_again({one: 0.4, other: 0.0})) == {one, other}
        assert (await rig.balancer.look(one)).weight == 40
        assert (await rig.balancer.look(other)).out

    async def test_a_deaf_balancer_is_told_and_nothing_changes(self, rig: BalancerRig) -> None:
        """The same order succeeds when it hears again."""
        one, _ = rig.servers
        await rig.balancer.put_back(one, 1.0)
        rig.go_away()
        with pytest.raises(BalancerUnavailableError):
            await rig.balancer.take_out(one)
        rig.come_back()
        assert not (await rig.balancer.look(one)).out
        await rig.balancer.take_out(one)
        assert (await rig.balancer.look(one)).out

    async def test_an_unknown_server_is_refused(self, rig: BalancerRig) -> None:
        """Another try would not help; the others are not kept waiting for it."""
        one, _ = rig.servers
        stranger = Server(one.backend, "127.0.0.1:9")
        self.forget(rig, stranger)
        with pytest.raises(BalancerRefusedError, match=r"127\.0\.0\.1:9"):
            await rig.balancer.take_out(stranger)

    def forget(self, rig: BalancerRig, server: Server) -> None:
        """Make a server unknown; real balancers do not know it anyway."""


class TestFakeBalancer(BalancerContract):
    """The fake keeps the promises that tests rely on."""

    @pytest.fixture
    def rig(self) -> BalancerRig:
        """Give the fake."""
        return FakeRig()

    def forget(self, rig: BalancerRig, server: Server) -> None:
        """The fake knows every server but those it is told not to."""
        assert isinstance(rig, FakeRig)
        rig.balancer.unknown.add(server)


@pytest.fixture
async def engines() -> AsyncIterator[list[StreamingEngine]]:
    """Give two engines that answer."""
    async with running_engines() as engines:
        yield engines


@needs("haproxy")
class TestHaproxy(BalancerContract):
    """The real thing, with the example's configuration."""

    @pytest.fixture
    def rig(self, engines: list[StreamingEngine]) -> Iterator[HaproxyRig]:
        """Give a running HAProxy."""
        rig = HaproxyRig((engines[0].address, engines[1].address), deadline_s=20.0)
        try:
            yield rig.start()
        finally:
            rig.close()

    async def test_a_reload_forgets(self, rig: HaproxyRig) -> None:
        """That is why states are asserted again."""
        one, _ = rig.servers
        await rig.balancer.take_out(one)
        await rig.reload()
        assert not (await rig.balancer.look(one)).out
        assert await rig.balancer.assert_again({one: 0.0}) == (one,)
        assert (await rig.balancer.look(one)).out

    async def test_maintenance_by_hand_is_left_alone(self, rig: HaproxyRig) -> None:
        """A person's `maint` outlives every order of ours."""
        one, _ = rig.servers
        await rig.say("set server chat/engine-0 state maint")
        await rig.balancer.take_out(one)
        await rig.balancer.put_back(one, 1.0)
        assert await rig.balancer.assert_again({one: 1.0}) == ()
        found = await rig.balancer.look(one)
        assert found.by_hand
        assert found.out

    async def test_a_hung_process_is_told_in_time(self, engines: list[StreamingEngine]) -> None:
        """A socket that accepts and says nothing must not hold up anybody."""
        rig = HaproxyRig((engines[0].address, engines[1].address), deadline_s=0.5).start()
        try:
            rig.freeze()
            with pytest.raises(BalancerUnavailableError, match="TimeoutError"):
                await rig.balancer.look(rig.servers[0])
        finally:
            rig.close()

    async def test_a_socket_without_rights_names_the_line(
        self, engines: list[StreamingEngine]
    ) -> None:
        """The operator reads what to change."""
        rig = HaproxyRig((engines[0].address, engines[1].address), deadline_s=20.0)
        try:
            rig.weaken()
            with pytest.raises(BalancerRefusedError, match="level admin"):
                await rig.start().balancer.take_out(rig.servers[0])
        finally:
            rig.close()

    async def test_the_socket_may_be_reached_over_the_network(
        self, engines: list[StreamingEngine]
    ) -> None:
        """An executor beside its engines, a balancer elsewhere."""
        rig = HaproxyRig((engines[0].address, engines[1].address))
        try:
            far = rig.also_over_tcp()
            await until_answering(far, rig.start().servers[0])
            await far.take_out(rig.servers[0])
            assert (await rig.balancer.look(rig.servers[0])).out
        finally:
            rig.close()

    async def test_an_unknown_backend_is_refused(self, rig: HaproxyRig) -> None:
        """With the names of the fields to correct."""
        with pytest.raises(BalancerRefusedError, match="correct `backend` and `server`"):
            await rig.balancer.take_out(Server("nowhere", "engine-0"))


@needs("nginx")
class TestNginx(BalancerContract):
    """The real thing, with the example's configuration."""

    @pytest.fixture
    def rig(self, engines: list[StreamingEngine]) -> Iterator[NginxRig]:
        """Give a running nginx."""
        yield from nginx_rig(engines)

    async def test_a_broken_include_changes_nothing(self, rig: NginxRig) -> None:
        """The file is as it was, requests pass, and the same order succeeds once it is mended."""
        one, _ = rig.servers
        before = rig.upstream_file.read_text()
        rig.extra.write_text("nonsense;\n")
        with pytest.raises(BalancerUnavailableError, match=r"unknown directive.*nonsense"):
            await rig.balancer.take_out(one)
        assert rig.upstream_file.read_text() == before
        assert await answering(rig) == {"engine-0", "engine-1"}
        rig.extra.write_text("")
        await rig.balancer.take_out(one)
        assert await answering(rig) == {"engine-1"}

    async def test_workers_that_do_not_come_are_noticed(
        self, engines: list[StreamingEngine]
    ) -> None:
        """A test that passes proves no reload: the file goes back to what runs."""
        rig = NginxRig((engines[0].address, engines[1].address), deadline_s=1.0, tests=False)
        try:
            before = rig.start().upstream_file.read_text()
            rig.extra.write_text("nonsense;\n")
            with pytest.raises(BalancerUnavailableError, match="no new workers"):
                await rig.balancer.take_out(rig.servers[0])
            assert rig.upstream_file.read_text() == before
            assert await answering(rig) == {"engine-0", "engine-1"}
        finally:
            rig.close()

    async def test_a_file_without_a_reload_is_not_believed(self, rig: NginxRig) -> None:
        """As after an executor that was killed between the two."""
        one, _ = rig.servers
        text = rig.upstream_file.read_text()
        rig.upstream_file.write_text(text.replace(f"{one.name} weight=100", f"{one.name} down"))
        assert not (await rig.balancer.look(one)).out
        await rig.balancer.take_out(one)
        assert (await rig.balancer.look(one)).out
        assert await answering(rig) == {"engine-1"}

    async def test_all_else_in_the_file_stays(self, rig: NginxRig) -> None:
        """Comments, other servers and other parameters are the operator's."""
        one, _ = rig.servers
        more = "server 127.0.0.1:9 backup; # spare\n"
        with rig.upstream_file.open("a") as file:
            file.write(more)
        head = rig.upstream_file.read_text().splitlines()[0]
        await rig.balancer.take_out(one)
        text = rig.upstream_file.read_text()
        assert text.endswith(more)
        assert text.startswith(head)
        assert f"server {one.name} weight=100 down;" in text


async def until_answering(balancer: Haproxy, server: Server) -> None:
    """Wait until a balancer that has just started answers."""
    async with asyncio.timeout(30):
        while True:
            with suppress(BalancerUnavailableError):
                await balancer.look(server)
                return
            await asyncio.sleep(0.02)


async def answering(rig: NginxRig) -> set[str]:
    """Return who answers forty requests on new connections."""
    traffic = Traffic(rig.url)
    async with clients(keep_alive=False) as session:
        for _ in range(40):
            await traffic.ask(session)
    assert traffic.faults == []
    return {who for who, _ in traffic.answers}


def nginx_rig(engines: list[StreamingEngine]) -> Iterator[NginxRig]:
    """Give a running nginx in front of two engines."""
    rig = NginxRig((engines[0].address, engines[1].address))
    try:
        yield rig.start()
    finally:
        rig.close()


@needs("nginx")
async def test_weights_of_nginx_alone_wait_for_their_pause(
    engines: list[StreamingEngine],
) -> None:
    """Every reload keeps old workers for their streams; a change of state does not wait."""
    rig = NginxRig((engines[0].address, engines[1].address), weight_pause_s=3600.0)
    one, other = rig.servers
    try:
        rig.start()
        await rig.balancer.assert_again({one: 1.0, other: 1.0})
        assert await rig.balancer.assert_again({one: 0.5, other: 1.0}) == ()
        assert set(await rig.balancer.assert_again({one: 0.5, other: 0.0})) == {one, other}
        assert (await rig.balancer.look(one)).weight == 50
    finally:
        rig.close()
