"""Each error says whether another try can help."""

import pytest

from gatemesh_common.database import DataRefusedError
from gatemesh_common.errors import (
    BrokerRefusedError,
    BrokerUnavailableError,
    DatabaseUnavailableError,
    GatemeshError,
    SettingsError,
    UnroutableError,
)


@pytest.mark.parametrize(
    ("error", "retryable"),
    [
        (GatemeshError, False),
        (BrokerUnavailableError, True),
        (BrokerRefusedError, False),
        (UnroutableError, False),
        (DatabaseUnavailableError, True),
        (DataRefusedError, False),
        (SettingsError, False),
    ],
)
def test_retrying_is_a_matter_of_class(error: type[GatemeshError], *, retryable: bool) -> None:
    """The shell asks the class, not the text."""
    assert error.retryable is retryable
    assert issubclass(error, GatemeshError)


def test_an_unroutable_message_names_its_way_out() -> None:
    """The queues are declared by their reader."""
    error = UnroutableError("vllm_control", "command.v1.x")
    assert (error.exchange, error.routing_key) == ("vllm_control", "command.v1.x")
    assert "start the consuming service once" in str(error)
