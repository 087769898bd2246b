"""Incidents with all that speaks for them."""

from .conftest import CAPTURE, HOSTILE, TEXTS, Office


async def test_the_list_shows_and_filters(office: Office) -> None:
    """By status, pool and instance; a script gets the rows alone."""
    text = (await office.client.get("/incidents?status=open&pool=p&instance=i")).text
    assert "B (hard proof)" in text
    assert HOSTILE not in text
    _, values = office.store.asked[-1]
    assert (values["status"], values["pool"], values["instance_id"]) == ("open", "p", "i")
    part = (await office.client.get("/incidents", **{"hx-request": "true"})).text
    assert "<html" not in part


async def test_the_page_has_every_kind_of_evidence(office: Office) -> None:
    """Verdict with span and threshold, transition, command with steps, rules, what would be."""
    text = (await office.client.get("/incidents/i-1")).text
    for part in ("char_start 3", "0.93", "0.4", "41.2", "fence 7", "taken_out", "v-1", "hard"):
        assert part in text
    assert "No capture kept." in text
    assert HOSTILE not in text
    assert "token_start" not in text


async def test_a_capture_shows_tokens_and_both_answers(office: Office) -> None:
    """Coloured by entropy, the span at fault marked, escaped."""
    office.store.tables |= {"captures_v1": [CAPTURE], "capture_texts_v1": [TEXTS]}
    text = (await office.client.get("/incidents/i-1")).text
    for part in ('class="token heat-2"', "heat-unknown fault", "Answer of engine", "fine"):
        assert part in text
    assert "No capture kept." not in text
    assert HOSTILE not in text


async def test_texts_are_asked_for_of_the_captures_that_are_shown(office: Office) -> None:
    """Others of the same minutes must not take their place; without any, nothing is asked."""
    bare = CAPTURE | {"capture_id": "c-2", "has_text": False}
    office.store.tables |= {"captures_v1": [CAPTURE, bare], "capture_texts_v1": [TEXTS]}
    await office.client.get("/incidents/i-1")
    asked = [values["ids"] for query, values in office.store.asked if "capture_texts_v1" in query]
    assert asked == [["c-1"]]
    office.store.tables["captures_v1"] = [bare]
    office.store.asked.clear()
    await office.client.get("/incidents/i-1")
    assert not any("capture_texts_v1" in query for query, _ in office.store.asked)


async def test_figures_are_shown_where_texts_may_not_be_read(office: Office) -> None:
    """And the page says why there is no text."""
    office.store.tables["captures_v1"] = [CAPTURE]
    text = (await office.client.get("/incidents/i-1")).text
    assert "The text was not kept" in text
    assert 'class="token heat-2"' in text


async def test_an_incident_that_is_none_is_told(office: Office) -> None:
    """As a page."""
    assert (await office.client.get("/incidents/none")).status == 404
