import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.core.result import Ok

from tests.server.conftest import Running


def test_the_server_keeps_to_its_description(server: Running) -> None:
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    tried = 0
    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
            strategy = operation.as_strategy(generation_mode=mode)

            @settings(
                max_examples=12,
                derandomize=True,
                database=None,
                deadline=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @schemathesis.given(case=strategy) if hasattr(schemathesis, "given") else _given(strategy)
            def check(case: schemathesis.Case) -> None:
                nonlocal tried
                tried += 1
                case.call_and_validate(timeout=60)

            check()
    assert tried > 60
