"""Red lines: what stops a task until Sir has said yes, and what must not."""

from __future__ import annotations

import pytest

from orchestration.policy import DEFAULT_POLICY, Policy
from orchestration.rules.phrases import Signal
from orchestration.rules.redlines import red_line_digest, red_lines_in

CROSSING = [
    # data deletion, in words
    "删除用户数据",
    "把旧数据全部清掉之前，先删除备份",
    "清空数据库",
    "抹掉这台机器上的所有文件",
    "删库",
    "格式化硬盘",
    "delete the customer data",
    "Deleting all user records",
    "deleted the production database backups",
    "wipe everything",
    "purge the S3 bucket",
    "destroy the volume",
    "erase all messages",
    # data deletion, in commands
    "rm -rf build",
    "rm -fr /data",
    "rm -r -f x",
    "rm -v -Rf x",
    "rm x -r",
    "rm --recursive x",
    "rm -i --force --recursive x",
    "sudo rm -rf /",
    "bash -c 'rm -rf /tmp/x'",
    "DROP TABLE users;",
    "drop\n  database prod",
    "TRUNCATE TABLE orders",
    "psql -c 'DELETE FROM users'",
    "shutil.rmtree(path)",
    "find . -name '*.log' -delete",
    "dd if=/dev/zero of=/dev/sda",
    "mkfs.ext4 /dev/sdb1",
    "redis-cli FLUSHALL",
    "docker system prune -af",
    "docker volume rm data",
    "aws s3 rm s3://bucket --recursive",
    "kubectl delete namespace shop",
    # live trading
    "切到实盘",
    "用真实资金下单",
    "start live trading",
    "place live orders with real money",
    # production change
    "把新版本部署到生产环境",
    "修改线上配置",
    "生产环境变更",
    "deploy to production",
    "Deploying the new build to prod",
    "roll out the fix in production",
    "git push heroku production",
    "update the production config",
    "restart the prod servers",
    "kubectl apply -f x.yaml -n prod",
    "kubectl --context=prod-eu delete pod x",
    "helm upgrade shop ./chart --namespace production",
    "terraform apply -var-file=prod.tfvars",
    "terraform destroy",
]
HARMLESS = [
    "",
    "delete trailing whitespace",
    "delete the temp variable",
    "Delete unused imports",
    "remove the data attribute",
    "删除多余空格",
    "删除临时变量",
    "清空输入框",
    "格式化代码",
    "更新数据库文档",
    "写一份关于生产环境的说明",
    "生产力工具对比",
    "用模拟盘回测",
    "rm file.txt",
    "rm -f file.txt",
    "farm -rf",
    "perform --recursive",
    "rm foo; ls -r",
    "rm foo && cp -r a b",
    "rm foo\nls -r",
    "ls -r",
    "drop-down table menu",
    "tables dropped in price",
    "kubectl get pods -n prod",
    "kubectl apply -f x.yaml -n staging",
    "terraform plan -var-file=prod.tfvars",
    "deploy the docs to staging",
    "production-ready code",
    "push the button, then look at production numbers",
    "a new product",
    "reproduce the bug",
    "the live stream of trade news",
    "delete it. The data is fine",
    "delete the file, data stays",
    "delete" + " x" * 30 + " data",
    "git commit -m 'Delete dead code'",
]


@pytest.mark.parametrize("text", CROSSING)
def test_red_lines_are_found(text: str) -> None:
    (first, *_) = red_lines_in([text], DEFAULT_POLICY)
    assert first.kind == "red_line"
    assert text[first.offset :].startswith(first.text)


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_wording_is_left_alone(text: str) -> None:
    assert red_lines_in([text], DEFAULT_POLICY) == []


@pytest.mark.parametrize(
    "text",
    [
        "rm\u200b -rf /",
        "r\u200dm -rf /",
        "ｒｍ -rf /",
        "RM -RF /",
        "rm\t-rf /",
        "rm\u00a0-rf /",
        "rm \\\n  -rf /",
        "\u202erm -rf /\u202c",
        "rm\x00 -rf /",
        "\ud800rm -rf /",
        "删\ufeff除用户数\u2060据",
        "Delete\u3000the customer\u200b data",
    ],
)
def test_hidden_characters_do_not_hide_a_red_line(text: str) -> None:
    assert len(red_lines_in([text], DEFAULT_POLICY)) == 1


def test_offsets_count_in_the_text_they_are_in() -> None:
    texts = ["Clean up", "x\u200b; rm -rf build", "DROP TABLE users"]
    assert red_lines_in(texts, DEFAULT_POLICY) == [
        Signal("red_line", "rm -rf", 4),
        Signal("red_line", "DROP TABLE", 0),
    ]


def test_overlapping_phrases_are_one_finding() -> None:
    text = "delete all user data and records"
    assert red_lines_in([text], DEFAULT_POLICY) == [Signal("red_line", "delete all user data", 0)]


def test_the_hundred_and_first_mention_is_not_missed() -> None:
    text = "delete whitespace. " * 500 + "delete the customer data"
    (found,) = red_lines_in([text], DEFAULT_POLICY)
    assert found.offset == text.rindex("delete")


def test_findings_are_limited_to_a_hundred_a_text() -> None:
    assert len(red_lines_in(["rm -rf x;" * 1_000], DEFAULT_POLICY)) == 100


@pytest.mark.parametrize(
    "text",
    [
        "rm " * 100_000,
        "delete " * 50_000 + "data",
        "kubectl " * 50_000,
        "删除" * 100_000,
        "-" * 200_000,
        "rm -" * 50_000,
        "\x00" * 500_000,
    ],
)
def test_hostile_repetition_ends(text: str) -> None:
    assert len(red_lines_in([text], DEFAULT_POLICY)) <= 100


def test_red_lines_come_from_the_policy() -> None:
    policy = Policy.parse(
        {"triggers": {"red_lines": ["launch … rocket|missile", "发射", "zap -xq"]}}
    )
    crossing = ["launching the big rocket", "LAUNCH missiles", "准备发射", "zap a -q b -x"]
    harmless = ["launch the site", "rockets", "zap -x", "rm -rf /"]
    assert all(red_lines_in([text], policy) for text in crossing)
    assert not any(red_lines_in([text], policy) for text in harmless)


def test_an_empty_list_switches_them_off() -> None:
    assert red_lines_in(["rm -rf /"], Policy.parse({"triggers": {"red_lines": []}})) == []


@pytest.mark.parametrize("phrase", ["-rf", "a|", "|a", "a | b", "c++", "x … -r", "删…|库"])
def test_odd_phrases_of_a_policy_do_no_harm(phrase: str) -> None:
    policy = Policy.parse({"triggers": {"red_lines": [phrase]}})
    assert red_lines_in(["给函数加个注释"], policy) == []


def test_a_digest_stands_for_all_that_crosses() -> None:
    texts = ["Clean up", "rm -rf build", "DROP TABLE users"]
    digest = red_line_digest(texts, DEFAULT_POLICY)
    assert len(digest) == 64
    assert digest == red_line_digest(list(reversed(texts)), DEFAULT_POLICY)
    assert digest == red_line_digest([" rm -rf build\n", *texts[1:]], DEFAULT_POLICY)
    assert digest == red_line_digest([*texts, "another harmless line"], DEFAULT_POLICY)


@pytest.mark.parametrize(
    "changed",
    [
        ["rm -rf builds"],
        ["rm -rf build", "rm -rf dist"],
        ["rm -rf build && echo done"],
    ],
)
def test_other_content_has_another_digest(changed: list[str]) -> None:
    approved = red_line_digest(["rm -rf build"], DEFAULT_POLICY)
    assert red_line_digest(changed, DEFAULT_POLICY) != approved


def test_nothing_crossed_has_no_digest() -> None:
    assert red_line_digest(["Clean up", ""], DEFAULT_POLICY) == ""
    assert red_line_digest([], DEFAULT_POLICY) == ""


def test_a_digest_takes_any_text() -> None:
    assert len(red_line_digest(["\ud800 rm -rf \x00/"], DEFAULT_POLICY)) == 64
