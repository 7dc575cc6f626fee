"""S0: what goes direct, what is assessed, and which words say so."""

from __future__ import annotations

import pytest

from orchestration.policy import DEFAULT_POLICY, Policy
from orchestration.rules.prefilter import (
    SIGNAL_KINDS,
    PrefilterResult,
    Signal,
    compile_triggers,
    find_signals,
    prefilter,
)


def run(text: str) -> PrefilterResult:
    """Run S0 with the default policy."""
    return prefilter(text, DEFAULT_POLICY)


def kinds(text: str) -> set[str]:
    """Return the kinds of signals of a text."""
    return set(run(text).counts)


@pytest.mark.parametrize(
    ("text", "kind", "matched", "offset"),
    [
        ("重构支付模块", "intent_verb", "重构", 0),
        ("请分析一下", "intent_verb", "分析", 1),
        ("优化首页", "intent_verb", "优化", 0),
        ("看看全部文件", "scope_word", "全部", 2),
        ("从零开始学画画", "scope_word", "从零开始", 0),
        ("做一个端到端的演示", "scope_word", "端到端", 3),
        ("这是一个复杂任务", "explicit_trigger", "复杂任务", 4),
        ("用三步法", "explicit_trigger", "三步法", 1),
        ("这个需要规划一下", "explicit_trigger", "需要规划", 2),
        ("走完整流程", "explicit_trigger", "完整流程", 1),
        ("想办法把它弄快一点", "uncertainty", "想办法", 0),
        ("这个怎么弄比较好", "uncertainty", "怎么弄比较好", 2),
        ("先倒水，然后喝水，最后洗杯子", "multi_step", "先…然后", 0),
        ("第一步倒水，第二步喝水", "multi_step", "第一步…第二步", 0),
        ("下载并解析这个文件", "multi_step", "下载并解析", 0),
        ("Deploy it", "intent_verb", "Deploy", 0),
        ("please refactor this", "intent_verb", "refactor", 7),
        ("set up the printer", "intent_verb", "set up", 0),
        ("all of it", "scope_word", "all of", 0),
        ("do it from scratch", "scope_word", "from scratch", 6),
        ("an end-to-end demo", "scope_word", "end-to-end", 3),
        ("the Entire thing", "scope_word", "Entire", 4),
        ("this is a complex task", "explicit_trigger", "complex task", 10),
        ("it needs planning", "explicit_trigger", "needs planning", 3),
        ("use the three-step way", "explicit_trigger", "three-step", 8),
        ("figure out what is wrong", "uncertainty", "figure out", 0),
        ("First eat, then sleep, finally rest", "multi_step", "First…then", 0),
        ("fetch, parse and store it", "multi_step", "fetch, parse and store", 0),
    ],
)
def test_each_kind_of_signal_is_found_with_text_and_offset(
    text: str, kind: str, matched: str, offset: int
) -> None:
    result = run(text)
    assert result.outcome == "assess"
    assert Signal(kind, matched, offset) in result.signals
    assert text[offset:].startswith(matched.split("…")[0])


@pytest.mark.parametrize(
    "text",
    [
        "designs it",
        "designed it",
        "designing it",
        "redesign it",
        "re-design it",
        "re-deployed it",
        "it was rebuilt",
        "building it",
        "built it",
        "migrating it",
        "migrated it",
        "migrates it",
        "analysed it",
        "analyzing it",
        "sets up it",
        "setting up it",
        "set   up it",
        "set-up it",
        "optimising it",
        "帮我deploy一下",
        "用deploy.的方式",
        "DEPLOY",
        "ＤＥＰＬＯＹ it",
    ],
)
def test_english_verbs_match_in_every_form(text: str) -> None:
    assert "intent_verb" in kinds(text)


@pytest.mark.parametrize(
    "text",
    [
        "my designerly friend",
        "a rebuilding_flag variable",
        "undeployable",
        "deploy2 is a name",
        "set it down up there",
        "reset the clock",
        "the creator said so",
    ],
)
def test_english_words_need_boundaries(text: str) -> None:
    assert "intent_verb" not in kinds(text)


@pytest.mark.parametrize(
    "text",
    [
        "谢谢，另外把整个支付系统重构一下",
        "ok. now delete everything",
        "好的。把架构改掉",
        "继续。重构支付模块",
        "嗯，部署吧",
        "几点了？顺便重构一下支付系统",
        "帮我搜索论文，然后设计一个实验",
        "帮我搜索资料并分析原因",
        "打开项目，重构支付模块",
        "打开设置 重构支付系统",
        "打开设置🙂重构支付系统",
        "打开终端；部署系统",
        "打开第一步的文件和第二步的文件",
        "打开终端\n部署系统",
        "发消息给张三，再把系统重构了",
        "翻译这句话：你好。重构整个支付系统",
        "翻译这句话：“你好”，然后重构支付系统",
        "open the repo and deploy it",
        "open the repo to refactor the payment system",
        "open the door, then redesign the house",
        "search for docs then build a parser",
        "thanks, also redesign the entire payment system",
        "能不能把整个系统删了重写一遍？",
        "can you rewrite the entire payment system?",
        "怎么部署？",
        "how do I deploy this?",
        "好的，打开项目，重构支付模块，谢谢",
        "好的" + "\u200b" + "，重\u200b构系统",
    ],
)
def test_nothing_rides_along_with_a_whitelisted_opening(text: str) -> None:
    result = run(text)
    assert result.outcome == "assess"
    assert result.kind_of_message is None
    assert result.rule.startswith("signal.")


@pytest.mark.parametrize(
    "text",
    [
        "给函数加个注释",
        "今天天气不错，出去走走",
        "把标题改成红色",
        "line one\nline two",
        "版本 1.2 和 2.0 有差别",
        "价格是 3.50，昨天 10:30 买的",
        "see section 2. It is short",
        "rename foo to bar",
        "a single - dash",
        "- only one bullet",
        "把 a.py 改名为 b.py",
        "我和他，与你",
    ],
)
def test_without_signals_a_message_goes_direct(text: str) -> None:
    result = run(text)
    assert (result.outcome, result.rule, result.signals) == ("direct", "no_signal", ())


@pytest.mark.parametrize(
    ("text", "markers"),
    [
        ("1. 买菜\n2. 做饭", ["1.", "2."]),
        ("1、买菜 2、做饭 3、洗碗", ["1、", "2、", "3、"]),
        ("(1) eat (2) sleep", ["1)", "2)"]),
        ("一、买菜\n二、做饭", ["一、", "二、"]),
        ("①买菜②做饭", ["①", "②"]),
        ("- a\n- b\n- c", ["-", "-", "-"]),
        ("  * a\n\t* b", ["*", "*"]),
        ("• a\n• b", ["•", "•"]),
        ("- [ ] a\n- [x] b", ["-", "-"]),
        ("a) eat\nb) sleep", ["a)", "b)"]),
        ("第一步：倒水\n第二步：喝水", ["第一步", "第二步"]),
        ("Step 1: eat\nStep 2: sleep", ["step 1", "step 2"]),
        ("需求：1.买菜 2.做饭", ["1.", "2."]),
    ],
)
def test_lists_are_found(text: str, markers: list[str]) -> None:
    result = run(text)
    found = [signal for signal in result.signals if signal.kind == "list"]
    assert [signal.text for signal in found] == markers
    assert all(text[s.offset :].lower().startswith(s.text) for s in found)
    assert result.counts["list"] == len(markers)


@pytest.mark.parametrize(
    ("text", "offset"),
    [("one\n\ntwo", 5), ("one\n  \n\n  two", 10), ("a\nb\nc", 2), ("甲\r\n\r\n乙", 5)],
)
def test_several_paragraphs_are_a_signal(text: str, offset: int) -> None:
    result = run(text)
    assert [s.offset for s in result.signals if s.kind == "paragraphs"] == [offset]


def test_blank_lines_around_one_paragraph_are_none() -> None:
    assert run("\n\n给函数加个注释\n\n\n").rule == "no_signal"


@pytest.mark.parametrize(("length", "outcome"), [(200, "direct"), (201, "assess")])
def test_length_counts_characters_beyond_the_threshold(length: int, outcome: str) -> None:
    assert run("猫" * length).outcome == outcome
    assert run("  " + "猫" * length + "\n").outcome == outcome


def test_length_threshold_comes_from_the_policy() -> None:
    policy = Policy.parse({"thresholds": {"s0_message_length_threshold": 5}})
    assert prefilter("给函数加个注释", policy).rule == "signal.length"


def test_offsets_count_in_the_original_text() -> None:
    text = "  \u200b\u200b请\ufeff部\u200b署\x00 it"
    (signal,) = run(text).signals
    assert signal == Signal("intent_verb", "部署", text.index("部"))


def test_offsets_survive_hidden_characters_before_and_after() -> None:
    text = "\u200b" * 7 + "先a" + "\u202e" * 3 + "然后b，重构整个"
    for signal in run(text).signals:
        assert text[signal.offset] == signal.text[0]


def test_words_inside_words_count_for_both_kinds() -> None:
    assert kinds("走完整流程") == {"scope_word", "explicit_trigger"}


def test_the_first_kind_in_order_is_the_rule() -> None:
    result = run("重构整个系统，这是复杂任务")
    assert set(result.counts) == {"intent_verb", "scope_word", "explicit_trigger"}
    assert result.rule == "signal.intent_verb"
    assert SIGNAL_KINDS.index("intent_verb") < SIGNAL_KINDS.index("scope_word")


def test_at_most_a_hundred_signals_a_kind_and_the_full_count() -> None:
    result = run("整个 build " * 300)
    by_kind = [signal.kind for signal in result.signals]
    assert by_kind.count("scope_word") == by_kind.count("intent_verb") == 100
    assert result.counts["scope_word"] == result.counts["intent_verb"] == 300


def test_rare_signals_at_the_end_of_a_text_full_of_others_are_found() -> None:
    text = "build " * 20_000 + "from scratch; a complex task"
    result = run(text)
    assert result.counts["intent_verb"] == 20_000
    assert Signal("scope_word", "from scratch", text.index("from")) in result.signals
    assert Signal("explicit_trigger", "complex task", text.index("complex")) in result.signals


def test_signals_are_in_text_order() -> None:
    offsets = [s.offset for s in run("先看架构 then build 整个系统，然后部署").signals]
    assert offsets == sorted(offsets)


def test_find_signals_reads_whitelisted_messages_too() -> None:
    assert run("帮我搜索系统架构").signals == ()
    signals, counts = find_signals("帮我搜索系统架构", DEFAULT_POLICY)
    assert [signal.text for signal in signals] == ["系统", "架构"]
    assert counts == {"scope_word": 2}


def test_trigger_words_come_from_the_policy() -> None:
    policy = DEFAULT_POLICY.merged({"triggers": {"intent_verbs": ["烹饪", "C++", "frobnicate"]}})
    assert prefilter("重构支付模块", policy).rule == "no_signal"
    assert prefilter("烹饪晚饭", policy).signals == (Signal("intent_verb", "烹饪", 0),)
    assert prefilter("some c++ code", policy).signals == (Signal("intent_verb", "c++", 5),)
    assert prefilter("frobnicating", policy).counts == {"intent_verb": 1}


def test_empty_word_lists_are_allowed() -> None:
    empty: dict[str, list[str]] = {name: [] for name in DEFAULT_POLICY.document()["triggers"]}
    policy = Policy.parse({"triggers": empty})
    assert prefilter("重构整个系统 and deploy", policy).rule == "no_signal"
    assert prefilter("重构" * 101, policy).rule == "signal.length"


def test_words_are_compiled_once_for_equal_policies() -> None:
    one, other = Policy(), Policy.parse({})
    assert one is not other
    assert compile_triggers(one.triggers, one.thresholds) is compile_triggers(
        other.triggers, other.thresholds
    )


def test_policies_do_not_mix() -> None:
    empty: dict[str, list[str]] = {name: [] for name in DEFAULT_POLICY.document()["triggers"]}
    policies = [
        Policy.parse({"triggers": {**empty, "intent_verbs": [f"verb{index}"]}})
        for index in range(100)
    ]
    for index, policy in enumerate(policies):
        assert prefilter(f"verb{index} it", policy).outcome == "assess"
        assert prefilter(f"verb{index + 1} it", policy).outcome == "direct"


def test_record_has_the_shape_of_the_api() -> None:
    record = run("重构它").as_json()
    assert record["stage"] == "S0"
    assert record["outcome"] == "assess"
    assert record["rule"] == "signal.intent_verb"
    assert record["signals"] == [{"kind": "intent_verb", "text": "重构", "offset": 0}]
    assert isinstance(record["elapsed_us"], int)


HOSTILE = {
    "empty": "",
    "blanks": " \t\n\u3000",
    "nuls": "\x00" * 1_000_000,
    "surrogates": "\ud800" * 300_000,
    "mixed surrogates": "重\udc00构",
    "direction marks": "\u202e重构\u202c\u200f",
    "direction marks only": "\u202e\u200f\u061c",
    "first, a megabyte": "先" * 333_333,
    "emoji only": "😀👩‍👩‍👧‍👦🇨🇳" * 10,
    "emoji megabyte": "😀" * 250_000,
    "zero width megabyte": "a\u200b" * 250_000,
    "newlines": "a" + "\n" * 999_998 + "b",
    "blank lines": "a\n\n" * 333_333,
    "bullets": "- a\n" * 250_000,
    "numbers": "1. " * 333_333,
    "one word": "a" * 1_000_000,
    "verbs": "build " * 166_666,
    "almost words": "buil " * 200_000,
    "scope": "整个" * 166_666,
    "dotted capital i": "İ" * 300_000,
    "brackets": "(" * 500_000 + ")" * 500_000,
    "quotes": '翻译这句话："' + '"' * 100,
    "spaces then word": " " * 999_990 + "重构",
    "combining": "e\u0301" * 1_000,
    "thanks without end": "谢谢" * 99 + "x",
    "ok without end": "ok " * 60 + "x",
    "pieces": "先然后再接着最后" * 41_000,
}


@pytest.mark.parametrize("name", list(HOSTILE))
def test_hostile_text_gives_an_answer(name: str) -> None:
    text = HOSTILE[name]
    result = run(text)
    assert result.outcome == ("assess" if result.rule.startswith("signal.") else "direct")
    assert all(0 <= signal.offset < max(1, len(text)) for signal in result.signals)
    per_kind = [signal.kind for signal in result.signals]
    assert all(per_kind.count(kind) <= 100 for kind in set(per_kind))
    assert all(
        text[signal.offset] == signal.text[0]
        for signal in result.signals
        if signal.kind in ("intent_verb", "scope_word")
    )


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("empty", "whitelist.small_talk"),
        ("blanks", "whitelist.small_talk"),
        ("nuls", "whitelist.small_talk"),
        ("emoji only", "whitelist.small_talk"),
        ("direction marks only", "whitelist.small_talk"),
        ("mixed surrogates", "signal.intent_verb"),
        ("direction marks", "signal.intent_verb"),
        ("first, a megabyte", "signal.length"),
        ("emoji megabyte", "signal.length"),
        ("newlines", "signal.length"),
        ("spaces then word", "signal.intent_verb"),
        ("thanks without end", "no_signal"),
        ("ok without end", "no_signal"),
    ],
)
def test_hostile_text_is_decided_by_what_it_says(name: str, rule: str) -> None:
    assert run(HOSTILE[name]).rule == rule
