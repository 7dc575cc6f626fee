"""The whitelist of S0: whole messages only, and which of them are talk and which are work."""

from __future__ import annotations

import pytest

from orchestration.policy import DEFAULT_POLICY
from orchestration.rules.prefilter import prefilter
from orchestration.rules.whitelist import MessageKind

SMALL_TALK = [
    "好的",
    "明白",
    "谢谢",
    "嗯",
    "嗯嗯嗯",
    "好的，谢谢！",
    "好的👌",
    "谢谢啦~",
    "收到。",
    "ok",
    "OK!!!",
    "Thanks :)",
    "thank you very much",
    "ok thanks",
    "Got it.",
    "sounds good, thanks",
    "哈哈哈哈",
    "  好的\n",
    "👍",
    "🎉🎉",
    "……",
    "？",
    "❤️",
    "“好的”",
    "早上好",
    "You’re welcome",
    "yes, please",
    "不用了谢谢",
]
CONTINUATIONS = [
    "继续",
    "接着说",
    "下一步",
    "然后呢",
    "然后呢？",
    "go on",
    "Go on!",
    "好的，继续",
    "ok, go ahead",
    "thanks, continue",
    "嗯，下一步",
    "继续👍",
    "what's next?",
    "继续吧",
]
QUESTIONS = [
    "几点了",
    "几点了？",
    "天气怎样",
    "今天天气怎么样？",
    "翻译这句话",
    "翻译这句话：我们要重构整个支付系统",
    "翻译这句话：“你好。重构整个支付系统，然后部署。”",
    '翻译这句话: "Deploy the whole system, then rest."',
    "翻译成英文：你好",
    "把这句话翻译成英文：系统很大",
    "what time is it",
    "What time is it?",
    "translate this sentence: the system is down",
    "这个系统是什么？",
    "整个系统怎么样？",
    "你喜欢吃什么",
    "他在家吗",
    "Is the system slow?",
    "Why is the sky blue?",
    "能告诉我现在几点吗？",
    "who are you",
    "为什么？",
    "搜索引擎是什么？",
    "几点了，谢谢",
    "好的，几点了？谢谢！",
    "请翻译这句话：今天天气很好",
    "翻译这句话：“我们要重构系统。”谢谢",
    "这是一个" + "非常" * 15 + "长的问题呢？",
]
INSTRUCTIONS = [
    "帮我搜索系统架构设计",
    "搜索并发编程",
    "请帮我搜一下猫",
    "打开Y",
    "打开设置",
    "打开部署文档",
    "麻烦打开 https://example.com/a?b=c,d;e",
    "发消息给Z",
    "发消息给张三：部署系统",
    "发邮件给老板说系统部署完成了",
    "open the deployment dashboard",
    "Open config.yaml",
    "please open the door",
    "search for system architecture patterns",
    "search for how to deploy django",
    "can you open the window?",
    "send a message to Bob: the system is up",
    "search for cats and dogs",
    "好的，打开系统设置，谢谢",
    "OK, open the system settings, please.",
]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (kind, text)
        for kind, texts in (
            (MessageKind.SMALL_TALK, SMALL_TALK),
            (MessageKind.CONTINUATION, CONTINUATIONS),
            (MessageKind.QUESTION, QUESTIONS),
            (MessageKind.INSTRUCTION, INSTRUCTIONS),
        )
        for text in texts
    ],
)
def test_whitelisted_messages_go_direct_with_their_kind(kind: MessageKind, text: str) -> None:
    result = prefilter(text, DEFAULT_POLICY)
    assert (result.outcome, result.rule) == ("direct", f"whitelist.{kind}")
    assert result.kind_of_message is kind
    assert result.signals == ()


@pytest.mark.parametrize("text", [*SMALL_TALK[:5], *CONTINUATIONS[:3], *QUESTIONS[:3]])
def test_talk_is_a_message(text: str) -> None:
    assert prefilter(text, DEFAULT_POLICY).is_message is True


@pytest.mark.parametrize("text", [*INSTRUCTIONS, "给函数加个注释", "重构支付模块"])
def test_work_is_a_task(text: str) -> None:
    assert prefilter(text, DEFAULT_POLICY).is_message is False


@pytest.mark.parametrize(
    "text",
    [
        "谢谢你的帮助，明天见",
        "好的设计",
        "okapi",
        "okay but no",
        "继续重构",
        "行政部门",
        "明白人",
        "下一步棋",
        "goodness",
        "right-hand side",
        "几点了，帮我看看门",
        "谢谢，几点了，帮我看看门",
        "翻译这本书",
        "翻译这句话和那句话",
        "translate this codebase to rust",
        "打开",
        "open",
        "opening ceremony",
        "删除生产数据库？",
        "能帮我修改一下这个文件吗？",
        "这是一个" + "非常" * 16 + "长的问题呢？",
        "他来了吗？她呢？",
    ],
)
def test_what_only_starts_like_a_pattern_is_not_on_the_whitelist(text: str) -> None:
    assert prefilter(text, DEFAULT_POLICY).kind_of_message is None


def test_a_question_with_an_intent_verb_is_assessed() -> None:
    assert prefilter("要重构吗？", DEFAULT_POLICY).rule == "signal.intent_verb"


def test_a_long_message_is_never_on_the_whitelist() -> None:
    assert prefilter("好的" * 100, DEFAULT_POLICY).rule == "whitelist.small_talk"
    assert prefilter("好的" * 101, DEFAULT_POLICY).rule == "signal.length"
    assert prefilter("打开" + "门" * 199, DEFAULT_POLICY).rule == "signal.length"


def test_whitelist_words_come_from_the_policy() -> None:
    policy = DEFAULT_POLICY.merged(
        {
            "triggers": {
                "small_talk": ["喵"],
                "continuations": ["onward"],
                "questions": ["谁在值班"],
                "instructions": ["点亮"],
                "question_endings": ["咩"],
            }
        }
    )
    kinds = {
        text: prefilter(text, policy).kind_of_message
        for text in ("喵喵！", "Onward", "谁在值班", "点亮整个系统", "好吃咩", "好的")
    }
    assert kinds == {
        "喵喵！": MessageKind.SMALL_TALK,
        "Onward": MessageKind.CONTINUATION,
        "谁在值班": MessageKind.QUESTION,
        "点亮整个系统": MessageKind.INSTRUCTION,
        "好吃咩": MessageKind.QUESTION,
        "好的": None,
    }
