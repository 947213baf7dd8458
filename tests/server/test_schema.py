from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.server.conftest import Running


def test_the_server_keeps_to_its_description(server: Running) -> None:
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    tried: list[int] = []

    def check(case: "Case[Any]") -> None:
        answer = case.call()
        # No schema can tell a program with code from one without.
        refused = answer.status_code == 422 and answer.json()["error"]["code"]
        empty = refused in {"empty", "no-class"}
        case.validate_response(answer, excluded_checks=[positive_data_acceptance] if empty else [])
        tried.append(answer.status_code)

    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        for mode in GenerationMode.POSITIVE, GenerationMode.NEGATIVE:
            if operation.method.upper() == "GET" and mode is GenerationMode.NEGATIVE:
                continue  # there is nothing to get wrong
            few = settings(
                max_examples=15,
                derandomize=True,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            few(given(case=operation.as_strategy(generation_mode=mode))(check))()
    assert {200, 422} <= set(tried)
    assert len(tried) > 100
