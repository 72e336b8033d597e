"""Process addresses in node metadata: left out of comparisons, numbered for reproducible files."""

from __future__ import annotations

import json

from pt2kit.node_metadata import AddressNumbers, without_addresses

ONE = {
    "stack_trace": 'File "<eval_with_key>.957 from /a.py:1 in wrapped", line 6, in forward',
    "nn_module_stack": "L__self__,,M;140656628115408@1,linear,torch.nn.Linear;0,0,torch.nn.Linear",
    "from_node": json.dumps(
        [
            {
                "name": 'a "graph_id": 12 b',
                "target": "<function f at 0x7f4e557af920>",
                "graph_id": 140234,
                "from_node": [{"graph_id": -1}, {"graph_id": 99}, {"graph_id": 140234}],
            }
        ]
    ),
    "custom": '{"graph_id": 5, "note": "x at 0x12"}',
}
OTHER = {
    key: text.replace("957", "12").replace("140656628115408", "94101").replace("140234", "7").replace("920>", "00>")
    for key, text in ONE.items()
}


def test_two_processes_agree() -> None:
    """Texts that the user wrote are unchanged, in strings of JSON, too."""
    longer = {**OTHER, "nn_module_stack": OTHER["nn_module_stack"].replace("94101", "941019410194")}
    assert without_addresses(ONE) == without_addresses(longer) != without_addresses(OTHER)  # short keys are names
    found = without_addresses(ONE)
    assert found["custom"] == ONE["custom"]
    assert json.loads(found["from_node"])[0]["name"] == 'a "graph_id": 12 b'
    assert json.loads(found["from_node"])[0]["target"] == "<function f>"
    assert json.loads(found["from_node"])[0]["from_node"][0] == {"graph_id": -1}
    assert ";0,0,torch.nn.Linear" in found["nn_module_stack"]


def test_numbers_follow_the_first_occurrence() -> None:
    """Equal addresses get equal numbers, others differ; the result is its own result."""
    numbers = AddressNumbers()
    first, second = numbers.numbered(ONE), numbers.numbered(ONE)
    assert first == second
    [origin] = json.loads(first["from_node"])
    assert (origin["graph_id"], [one["graph_id"] for one in origin["from_node"]]) == (1, [-1, 2, 1])
    assert "100000000@1,linear" in first["nn_module_stack"]
    assert "<eval_with_key>.0 from" in first["stack_trace"]
    assert AddressNumbers().numbered(first) == first
    other = numbers.numbered({"nn_module_stack": "140656628115409,,M", "stack_trace": "<eval_with_key>.3"})
    assert other == {"nn_module_stack": "100000001,,M", "stack_trace": "<eval_with_key>.1"}


def test_keys_of_a_strict_export_that_is_exported_again() -> None:
    """A prefix before an address does not hide it; names that are numbers are unchanged."""
    stack = (
        "L__self__L__self__,,M;L__self__140656628115408,a,N;L__self__L__self__140656628115409@1,b,N;L__self___12,c,N"
    )
    first = AddressNumbers().numbered({"nn_module_stack": stack})["nn_module_stack"]
    assert first == ("L__self__L__self__,,M;L__self__100000000,a,N;L__self__L__self__100000001@1,b,N;L__self___12,c,N")
    other = stack.replace("1406566281154", "1398977236520")
    assert AddressNumbers().numbered({"nn_module_stack": other})["nn_module_stack"] == first
    assert without_addresses({"nn_module_stack": stack}) == without_addresses({"nn_module_stack": other})
