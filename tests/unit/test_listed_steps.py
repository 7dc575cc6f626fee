"""Messages that list their own steps, in Chinese and English, and those that do not."""

from __future__ import annotations

import random
from typing import Any

import pytest

from orchestration.contracts.plan import parse_plan
from orchestration.rules.inline_steps import number_of
from orchestration.rules.listed_steps import plan_from_message


def planned(message: str) -> dict[str, Any]:
    document = plan_from_message(message)
    assert document is not None
    parse_plan(document)
    return document


def actions(message: str) -> list[str]:
    return [step["action"] for step in planned(message)["steps"]]


def edges(message: str) -> dict[str, list[str]]:
    return {step["id"]: step["depends_on"] for step in planned(message)["steps"]}


CHAIN = {"1": [], "2": ["1"], "3": ["2"]}


@pytest.mark.parametrize(
    "marks",
    [
        ("1. ", "2. ", "3. "),
        ("1.", "2.", "3."),
        ("1) ", "2) ", "3) "),
        ("1、", "2、", "3、"),
        ("1．", "2．", "3．"),
        ("1: ", "2: ", "3: "),
        ("(1) ", "(2) ", "(3) "),
        ("（1）", "（2）", "（3）"),
        ("（一）", "（二）", "（三）"),
        ("①", "②", "③"),
        ("1️⃣ ", "2️⃣ ", "3️⃣ "),
        ("一、", "二、", "三、"),
        ("第一步：", "第二步：", "第三步："),
        ("第1步，", "第2步，", "第3步，"),
        ("步骤一：", "步骤二：", "步骤三："),
        ("步骤1 ", "步骤2 ", "步骤3 "),
        ("Step 1: ", "Step 2: ", "Step 3: "),
        ("step one - ", "step two - ", "step three - "),
        ("**1. ", "**2. ", "**3. "),
        ("## 1. ", "## 2. ", "## 3. "),
        ("  1. ", "  2. ", "  3. "),
        ("\t1. ", "\t2. ", "\t3. "),
        ("1. ", "2) ", "3、"),
        ("1. ", "1. ", "1. "),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
def test_numbered_lines_are_a_chain(marks: tuple[str, str, str], end: str) -> None:
    texts = ["收集 data", "run the tests", "写报告"]
    message = end.join(mark + text for mark, text in zip(marks, texts, strict=True))
    assert actions(message) == texts
    assert [len(needed) for needed in edges(message).values()] == [0, 1, 1]


def test_labels_become_ids_and_letters_run_together() -> None:
    message = (
        "Step 1: 分析需求\nStep 2a: 搜索API文档\nStep 2b: 检查本地缓存\nStep 2c: 查询数据库\n"
        "Step 3: 综合结果\nStep 4: 生成报告"
    )
    assert edges(message) == {
        "1": [],
        "2a": ["1"],
        "2b": ["1"],
        "2c": ["1"],
        "3": ["2a", "2b", "2c"],
        "4": ["3"],
    }


def test_labels_that_repeat_are_counted_anew() -> None:
    assert edges("1. a b\n2. c d\n1. e f") == CHAIN


@pytest.mark.parametrize("mark", ["- ", "* ", "+ ", "• ", "•", "– ", "  - ", "- [ ] "])
def test_bullets_run_in_parallel(mark: str) -> None:
    message = "\n".join(mark + text for text in ["整理文档", "run tests", "check links"])
    assert actions(message) == ["整理文档", "run tests", "check links"]
    assert edges(message) == {"1": [], "2": [], "3": []}


@pytest.mark.parametrize(
    ("bullets", "expected"),
    [
        (["one thing", "other thing", "finally report"], {"1": [], "2": [], "3": ["1", "2"]}),
        (["做一", "做二", "最后汇总"], {"1": [], "2": [], "3": ["1", "2"]}),
        (["load it", "then clean it", "draw a map"], {"1": [], "2": ["1"], "3": []}),
        (["下载", "然后解压", "写文档"], {"1": [], "2": ["1"], "3": []}),
        (["aa", "bb", "summarise all the above"], {"1": [], "2": [], "3": ["1", "2"]}),
        (["查资料", "做实验", "综合以上结果"], {"1": [], "2": [], "3": ["1", "2"]}),
        (["aa", "bb", "cc after step 1"], {"1": [], "2": [], "3": ["1"]}),
        (["aa", "bb", "cc (depends on 2)"], {"1": [], "2": [], "3": ["2"]}),
        (["aa", "bb", "依赖第2项，写报告"], {"1": [], "2": [], "3": ["2"]}),
        (["report after item 3", "aa", "bb"], {"1": ["3"], "2": [], "3": []}),
        (["aa after 2", "bb after 1"], {"1": [], "2": ["1"]}),
        (["aa after 1", "bb after 9"], {"1": [], "2": []}),
        (["write src/a.py", "write b.py", "test src/a.py"], {"1": [], "2": [], "3": ["1"]}),
        (["e.g. this", "e.g. that"], {"1": [], "2": []}),
        (["a Node.js server", "a Node.js client"], {"1": [], "2": []}),
    ],
)
def test_bullets_wait_for_what_they_name(
    bullets: list[str], expected: dict[str, list[str]]
) -> None:
    assert edges("\n".join(f"- {one}" for one in bullets)) == expected


@pytest.mark.parametrize(
    "message",
    [
        "先清洗数据，然后训练模型，最后写报告",
        "先清洗数据，然后训练模型，最后写报告。",
        "先清洗数据然后训练模型最后写报告",
        "先清洗数据再训练模型最后写报告",
        "首先清洗数据；其次，训练模型；最后，写报告！",
        "请先清洗数据，接着训练模型，随后写报告。",
        "第一步：清洗数据，第二步：训练模型，第三步：写报告",
        "1）清洗数据 2）训练模型 3）写报告",
        "1. 清洗数据；2. 训练模型；3. 写报告。",
        "（1）清洗数据；（2）训练模型；（3）写报告",
        "①清洗数据②训练模型③写报告",
        "第一，清洗数据；第二，训练模型；第三，写报告。",
    ],
)
def test_sentences_that_list_steps_in_chinese(message: str) -> None:
    assert actions(message) == ["清洗数据", "训练模型", "写报告"]
    assert edges(message) == CHAIN


@pytest.mark.parametrize(
    "message",
    [
        "First load the data, then train the model, finally write the report",
        "First, load the data; then train the model and finally write the report.",
        "first load the data then train the model finally write the report",
        "Please first load the data, next train the model, and lastly write the report.",
        "Firstly load the data. Secondly, train the model. Finally, write the report.",
        "First load the data, after that train the model, and then write the report",
        "Step 1 load the data, step 2 train the model, step 3 write the report",
        "1. load the data; 2. train the model; 3. write the report",
        "(1) load the data, (2) train the model, and (3) write the report",
    ],
)
def test_sentences_that_list_steps_in_english(message: str) -> None:
    assert actions(message) == ["load the data", "train the model", "write the report"]
    assert edges(message) == CHAIN


def test_a_condition_is_no_sequence() -> None:
    message = "First check if it rains then stay inside, finally go home"
    assert actions(message) == ["check if it rains then stay inside", "go home"]


def test_a_number_out_of_order_belongs_to_the_text() -> None:
    assert actions("1）打开 9）号文件 2）分析数据") == ["打开 9）号文件", "分析数据"]


def test_mixed_languages() -> None:
    assert actions("先 clean the data，然后 train 模型，finally 写 report") == [
        "clean the data",
        "train 模型",
        "写 report",
    ]


@pytest.mark.parametrize(
    "message",
    [
        "",
        "   \n ",
        "hello",
        "帮我重构支付系统",
        "Refactor the payment system.",
        "1. only one",
        "- only one",
        "谢谢，先生",
        "首先感谢大家",
        "他最先进的方法然后呢",
        "The version is 1.2 and then 3.4",
        "If it rains then stay in, finally sleep",
        "at first I thought so, then not",
        "a first-class seat, then a taxi",
        "The first name, then the last name",
        "compare options (1) and (2)",
        "2024. was a year\n2025. is another",
        "3.14 is pi\n2.71 is e",
        "-5 degrees\n-7 degrees",
        "---\n---\n---",
        "10:30 meeting\n11:30 lunch",
        "```\n1. a b\n2. c d\n```",
        "~~~\n- a b\n- c d\n~~~",
        "Look: ```first a then b finally c```",
        "1.\n2.\n3.",
        "- \n- \n",
        "which is better?\n1. Postgres\n2. MySQL",
        "以下哪个更好？\n- 甲方案\n- 乙方案",
        "Requirements:\n- must be fast\n- must be small",
        "注意：\n- 不要动生产库\n- 不要改接口",
        "- [x] done\n- [x] done too",
    ],
)
def test_a_message_that_lists_none(message: str) -> None:
    assert plan_from_message(message) is None


def test_text_around_the_list_is_the_summary() -> None:
    message = "请整理会议纪要：\n\n1. 听录音\n2. 写纪要\n\n谢谢，周五前要。"
    assert planned(message)["summary"] == "请整理会议纪要：\n谢谢，周五前要。"
    assert planned("数据在 /data。先清洗，再训练模型。结果要有图。")["summary"] == (
        "数据在 /data\n结果要有图"
    )


def test_a_request_phrased_as_a_question_is_a_list() -> None:
    assert actions("Can you do the following?\n1. clone it\n2. test it") == ["clone it", "test it"]


def test_nested_bullets_belong_to_their_parent() -> None:
    message = """Do this:
1. Build
   - compile
   - link
   with care
2. Test
- unit
- e2e
  1. chrome
"""
    assert actions(message) == [
        "Build\n- compile\n- link\nwith care",
        "Test\n- unit\n- e2e\n1. chrome",
    ]


def test_numbers_below_bullets_belong_to_the_bullets() -> None:
    message = "- Backend\n  1. api\n  2. database\n- Frontend\n  1. pages"
    assert actions(message) == ["Backend\n1. api\n2. database", "Frontend\n1. pages"]
    assert edges(message) == {"1": [], "2": []}


def test_the_outer_kind_of_number_leads() -> None:
    message = "一、准备\n1. 安装\n2. 配置\n二、执行\n1. 跑测试"
    assert actions(message) == ["准备\n1. 安装\n2. 配置", "执行\n1. 跑测试"]
    assert actions("1. Plan\n1.1 read\n1.2 ask\n2. Do") == ["Plan\n1.1 read\n1.2 ask", "Do"]


def test_bullets_before_the_numbers_are_background() -> None:
    document = planned("Known:\n- the disk is full\n- it is Friday\n\n1. free space\n2. restart")
    assert [step["action"] for step in document["steps"]] == ["free space", "restart"]
    assert "the disk is full" in document["summary"]


def test_notes_are_no_steps_and_steps_after_them_are() -> None:
    message = "Notes:\n- be quick\n- be quiet\n\nSteps:\n- go there\n- come back"
    document = planned(message)
    assert [step["action"] for step in document["steps"]] == ["go there", "come back"]
    assert "be quick" in document["summary"]


def test_a_heading_keeps_its_paragraphs() -> None:
    message = "## 1. Install\n\nrun pip first\n\n## 2. Test\n\nrun pytest"
    assert actions(message) == ["Install\nrun pip first", "Test\nrun pytest"]


def test_code_below_an_item_stays_with_it() -> None:
    message = "1. Run this:\n```\n1. not a step\n2. nor this\n```\n2. Report"
    assert actions(message)[1] == "Report"
    assert "not a step" in actions(message)[0]


def test_open_boxes_only() -> None:
    message = "- [x] plan the trip\n- [ ] book the train\n- [ ] pack the bag"
    assert actions(message) == ["book the train", "pack the bag"]


def test_a_line_right_below_an_item_goes_on_with_it() -> None:
    assert actions("1. write\nthe long report\n2. send it") == ["write\nthe long report", "send it"]


@pytest.mark.parametrize(
    ("word", "number"),
    [("7", 7), ("十", 10), ("十二", 12), ("二十", 20), ("三十一", 31), ("③", 3), ("Two", 2)],
)
def test_numbers_are_read(word: str, number: int) -> None:
    assert number_of(word) == number


@pytest.mark.parametrize("word", ["", "零", "一二", "十十", "eleven", "1.5", "²"])
def test_other_words_are_no_numbers(word: str) -> None:
    assert number_of(word) is None


@pytest.mark.parametrize(
    "message",
    [
        "1." + " " * 200_000,
        "#" * 200_000,
        "1" * 200_000,
        "一" * 200_000,
        "(1" * 100_000,
        "```" * 70_000,
        "a." * 100_000,
        "- " * 100_000,
        "先" * 200_000,
        "先做这件事" + " " * 200_000 + "然后做那件事 and " + " " * 100_000,
        "first " + "then " * 40_000,
        "first if " + "x then " * 30_000,
        "- see a.py after 1 finally\n" * 8_000,
        "1. ab\n" * 30_000,
        "1. " + "\u0000\u2028\u200b" * 50_000,
    ],
    ids=range(15),
)
def test_hostile_messages_end(message: str) -> None:
    document = plan_from_message(message)
    assert document is None or len(document["steps"]) > 1


def test_random_text_gives_a_valid_plan_or_none() -> None:
    chosen = random.Random(11)
    pieces = [
        *(
            "1. ",
            "2) ",
            "- ",
            "（三）",
            "第一步",
            "Step 2b: ",
            "## ",
            "```",
            "\n",
            "\n\n",
            "  ",
            "\t",
        ),
        *(
            "先",
            "然后",
            "最后",
            "first ",
            "then ",
            "after step 3 ",
            "a.py ",
            "做事",
            "work ",
            "，",
            "?",
        ),
        *("[x] ", "**", "① ", "above ", "Notes:"),
    ]
    for _ in range(2_000):
        message = "".join(chosen.choices(pieces, k=chosen.randrange(1, 40)))
        document = plan_from_message(message) or {"steps": [{"id": 1, "action": "none"}]}
        assert parse_plan(document).steps
