"""A job and a device of LAVA: the board is reached by ssh, and gets the test definition of deploy/."""

import json
from pathlib import Path
from typing import Any

import pytest

#: Part of the name of the directories that LAVA makes in the root of the board.
JOB = "latscope-test"


def device(port: int, identity: Path) -> dict[str, Any]:
    """Returns the description of a board that is reached at a port of loopback."""
    ssh = {
        "options": ["-o", "LogLevel=ERROR", "-o", "IdentitiesOnly=yes"],
        "host": "127.0.0.1",
        "port": port,
        "user": "root",
        "identity_file": str(identity),
    }
    return {
        "actions": {
            "deploy": {"connections": {"serial": None}, "methods": {"ssh": ssh}},
            "boot": {"connections": {"serial": None}, "methods": {"ssh": None}},
        },
        "timeouts": {"actions": {}, "connections": {}},
        "available_architectures": ["x86_64"],
        "constants": {
            "boot_retry": 1,
            "failure_retry": 1,
            "spawn_maxread": "4092",
            "kernel-start-message": "",
            "default-shell-prompt": "lava-test: # ",
            "posix": {
                "lava_test_sh_cmd": "/bin/sh",
                "lava_test_results_dir": "/lava-%s",
                "lava_test_shell_file": "~/.bashrc",
            },
        },
    }


def job(definition: dict[str, Any], parameters: dict[str, str]) -> dict[str, Any]:
    """Returns a job that runs a test definition on the board."""
    named = {"from": "inline", "repository": definition, "path": "inline/survey.yaml", "name": "latscope"}
    return {
        "job_name": "latscope",
        "device_type": "ssh",
        "visibility": "public",
        "timeouts": {"job": {"minutes": 10}, "action": {"minutes": 8}, "connection": {"minutes": 8}},
        "actions": [
            {"deploy": {"to": "ssh", "os": "debian", "timeout": {"minutes": 2}}},
            {"boot": {"method": "ssh", "prompts": ["root@.*[#$] "], "timeout": {"minutes": 2}}},
            {"test": {"timeout": {"minutes": 8}, "definitions": [named | {"parameters": parameters}]}},
        ],
    }


def results(log: str) -> list[dict[str, Any]]:
    """Returns what LAVA took for results of the test definition in the log of a job."""
    yaml = pytest.importorskip("yaml")
    # Each line is a flow mapping, whose counters have a tag that JSON does not know.
    lines = (line.removeprefix("- ") for line in log.splitlines() if '"lvl": "results"' in line)
    taken = [yaml.safe_load(line)["msg"] for line in lines]
    return [one for one in taken if one["definition"] == "0_latscope"]


def written(path: Path, value: dict[str, Any]) -> Path:
    """Writes JSON, which is YAML, too, and returns its path."""
    path.write_text(json.dumps(value))
    return path
