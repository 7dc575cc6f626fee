"""The workload of the prompt: a task with 50 predecessors in a project with 1,000 experiences."""

from __future__ import annotations

import random
import re
import time

from tests.bench.installation import Installation

PREDECESSORS = 50
EXPERIENCES = 1_000
READS = 60
WORDS = re.findall(
    r"\w+",
    "payment refund ledger lease heartbeat retry timeout queue broker cache index migration schema "
    "rollback deploy certificate token session cookie audit digest seal blueprint phase artifact",
)
PHRASES = re.findall(
    r"\w+", "数据库迁移 支付重试 租约续期 审计日志 缓存失效 索引重建 回滚方案 证书更新 会话管理"
)


def prompt_latencies(installation: Installation) -> list[float]:
    """Read the prompt over HTTP, as an agent does. Units: milliseconds."""
    project = installation.new_project()
    steps = [
        {"id": f"p{n}", "action": f"Prepare the {WORDS[n % len(WORDS)]} {n}", "delegate": False}
        for n in range(PREDECESSORS)
    ]
    last = {
        "id": "last",
        "action": "Join the payment ledger and the refund queue, with retry and rollback 支付重试",
        "depends_on": [step["id"] for step in steps],
        "delegate": False,
    }
    plan = {"summary": "bench", "steps": [*steps, last]}
    body = {"title": "prompt", "description": "prompt", "plan": plan}
    installation.post(f"projects/{project}/tasks", body)
    installation.wait_for_done(project)
    _write_experiences(installation, project)
    [(number,)] = installation.query(
        "SELECT t.id FROM orchestration_task t JOIN orchestration_project p ON p.id = t.project_id "
        f"WHERE p.slug = '{project}' AND t.step_key = 'last'"
    )
    path = f"api/projects/{project}/tasks/{number}/bootstrap?role=executor"
    installation.wait_for_rest()
    return [_timed_read(installation, path) for _ in range(READS)]


def _timed_read(installation: Installation, path: str) -> float:
    """Read once; a refusal for the token's rate is waited out and not counted."""
    while True:
        began = time.monotonic()
        answer = installation.http.get(path)
        took = (time.monotonic() - began) * 1000
        if answer.status_code != 429:
            break
        time.sleep(float(answer.headers["Retry-After"]))
    answer.raise_for_status()
    text = answer.json()["text"]
    if text.count("\n### ") != PREDECESSORS or "(L3a)" not in text:
        raise RuntimeError("the prompt lacks its predecessors or its experiences")
    return took


def _write_experiences(installation: Installation, project: str) -> None:
    """Write them over HTTP; a token's rate is kept by waiting as long as the answer says."""
    chosen = random.Random(7)  # the same texts in every run
    for number in range(EXPERIENCES):
        words = " ".join(chosen.choices(WORDS, k=40))
        phrases = "，".join(chosen.choices(PHRASES, k=6))
        document = {"title": f"{chosen.choice(WORDS)} {number}", "body": f"{words}。{phrases}"}
        while True:
            answer = installation.http.post(f"api/projects/{project}/experiences", json=document)
            if answer.status_code != 429:
                break
            time.sleep(float(answer.headers["Retry-After"]))
        answer.raise_for_status()
