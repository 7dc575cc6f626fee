"""Find what an agent says it did, in Chinese and English: files made, a build, tests, their counts.

Only what is said as done counts: not what is denied, planned, asked for or bound to a condition.
Every pattern is bounded, so hostile text costs linear time.
Source: DESIGN section 8 ("Independent verification"); source 003.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MOST_CHARACTERS = 200_000
MOST_CLAIMS = 100
CLAUSE_CHARACTERS = 400

_SENTENCE = re.compile(r"[。！？!?；;\n]|\.(?=\s|$)")
_CLAUSE = re.compile(r"[，,、]|\bbut\b|但是?|然后")
_AND = re.compile(r"\b(?:and|so|now)\b|而且|并且|同时|现在|目前", re.IGNORECASE)
"""Where a statement of its own begins inside a clause."""
_CONDITION = re.compile(
    r"如果|假如|若|一旦|当(?![前然下])|待|等到|除非"
    r"|\b(?:if|once|when|whenever|unless|until|as soon as)\b",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"没有?(?:任何|什么)?(?:问题|错误|报错|失败|警告)|无误|无错|请(?:求|注意|查|看)|按照?计划|会议"
    r"|不再(?!通过|成功|编译|构建)[^，。；\n]{0,3}|不[仅但过]|无需|不需要?|不会"
    r"|\bno (?:longer(?: needs?)?|more|errors?|warnings?|failures?|problems?|issues?"
    r"|regressions?)\b"
    r"|\bnot only\b|\b(?:does|do|did)(?: not|n['’]t) need\b|\bplease (?:note|see|find)\b",
    re.IGNORECASE,
)
"""Words of denial or intention that take nothing back."""
_INTENDED = re.compile(
    r"需要|必须|应该|应当|请|确保|建议|打算|计划|希望|准备"
    r"|\b(?:will|shall|should|would|could|may|might|must|need|needs|plan|please|ensure|make sure"
    r"|todo|going to|hope|expect|want)\b",
    re.IGNORECASE,
)
"""What is asked for or planned; it holds for all that follows in the clause."""
_DENIED = re.compile(
    r"未|没|不|无法|将|会|尚|待"
    r"|\b(?:not|never|no|none|cannot|before|failed to|unable"
    r"|to (?:be|make|get|have|see|let|ensure|check|verify|confirm|keep|bring))\b"
    r"|\bafter (?:all|the|these|those|our|unit|integration|every|\d+| ){0,6}$"
    r"|n['’]t\b",
    re.IGNORECASE,
)
_NOT_ALL = re.compile(r"\s?(?:率|后|之后|前|时|的)")
_FILE_VERB = re.compile(
    r"创建|新建|写入|生成|新增|写好"
    r"|\b(?:created|wrote|written|generated|added|implemented in|saved)\b",
    re.IGNORECASE,
)
_PATH = re.compile(
    r"(?<![A-Za-zÀ-ɏ0-9_./@:\-])[A-Za-z0-9_@.~\-/]{1,200}\.([A-Za-z][A-Za-z0-9]{0,7})"
    r"(?![A-Za-z0-9_/\-]|\.[A-Za-z0-9])"
)
_WIDE_PATH = re.compile(
    r"(?:(?<=^)|(?<=[\s`'\"“「《(（:：])|(?<=[建成增入好]了))"
    r"(?!一个|名为|文件|已|创建|新建|写|生成|新增)[\w@.~\-/]{1,200}\.([A-Za-z][A-Za-z0-9]{0,7})"
    r"(?![A-Za-z0-9_/\-]|\.[A-Za-z0-9])"
)
"""A path with more than ASCII in it: it begins where a blank, a mark or the verb ends."""
_ENDINGS = """
bat bash c cc cfg clj cmake conf cpp cs css csv cxx dart db diff dockerfile docx env erl ex
exs fish gif go gradle graphql h hpp hs html htm ini ipynb java jpg jpeg js json jsonl jsx
kt less lock log lua m md mjs cjs ml mod mk pdf php pl png po pptx proto ps1 py pyi r rb
rs rst sass scala scss sh sol sql sqlite sum svelte svg swift tex tf toml ts tsv tsx txt
vue webp xlsx xml yaml yml zig zsh
"""
_KNOWN_ENDINGS = frozenset(_ENDINGS.split())
_NO_FILES = frozenset(
    ["node.js", "vue.js", "next.js", "nuxt.js", "react.js", "express.js", "three.js", "d3.js"]
)
_BUILD = re.compile(
    r"(?:编译|构建|go build)[^，。；\n]{0,6}?(?:通过|成功|无误|无错"
    r"|没有?(?:任何)?(?:问题|错误|报错))|(?:可以|能够?)(?:正常)?编译"
    r"|\b(?:it|code|project|package|server|everything) (?:now )?(?:builds|compiles)\b"
    r"|\b(?:builds|compiles)(?= *(?:$|successfully|cleanly|fine|ok|without|now|and)|[,.])"
    r"|\bbuild (?:now )?(?:passes|passed|succeeds|succeeded|is green|ok)\b"
    r"|\b(?:compiled|built) (?:successfully|cleanly|fine)\b"
    r"|\bcompilation (?:passes|passed|succeeds|succeeded)\b",
    re.IGNORECASE,
)
_TEST = re.compile(
    r"(?:测试|用例)[^，。；\n]{0,12}?(?:通过|成功|全绿|没有?(?:任何)?(?:问题|失败))(?P<more>..?)?"
    r"|通过[^，。；\n]{0,10}?(?:测试|用例)"
    r"|(?:\b(?:go|(?:npm|yarn|pnpm|bun)(?: run)?|make|cargo|mvn|gradle) test"
    r"|\b(?:pytest|unittest|jest|vitest|tox))(?![A-Za-z])[^，。；\n]{0,12}?"
    r"(?:通过|成功|全绿|\b(?:pass(?:es|ed)?|succeed(?:s|ed)|is green)\b)(?P<rest>..?)?"
    r"|\btests? (?:suite )?(?:(?:are|is|all|now|have|has|also) ){0,3}"
    r"(?:pass|passes|passed|passing|green|succeed|succeeds|succeeded)\b"
    r"|\btest suite (?:passes|passed|is green|is passing)\b",
    re.IGNORECASE,
)
_PASSED = (
    re.compile(
        r"\b(\d{1,7})(?: unit| integration)? (?:tests? )?(?:have |all |are )?pass(?:ed|ing)?\b",
        re.I,
    ),
    re.compile(
        r"\ball (\d{1,7}) (?:unit |integration )?tests? (?:pass|passed|are passing|succeed)", re.I
    ),
    re.compile(r"(\d{1,7})\s*[个项条]?[^，。；\n\d]{0,6}(?:测试|用例)[^，。；\n\d]{0,6}通过"),
    re.compile(r"(?:测试|用例)[^，。；\n\d]{0,8}(\d{1,7})\s*[个项条]?[^，。；\n\d]{0,3}通过"),
    re.compile(r"通过[^，。；\n\d]{0,4}(\d{1,7})\s*[个项条]"),
)
_OF = re.compile(
    r"\b(\d{1,7})\s*/\s*(\d{1,7})\s*(?:tests? )?(?:pass(?:ed|ing)?\b|[^，。；\n\d]{0,4}通过)", re.I
)
_FAILED = (
    re.compile(r"\b(\d{1,7})(?: tests?)? failed\b", re.IGNORECASE),
    re.compile(r"(\d{1,7})\s*[个项条]?[^，。；\n\d]{0,6}(?:失败|未通过)"),
)
_RAN = re.compile(
    r"\b(\d{1,7}) tests?(?: run| ran)?[,，] ?(?:and |with )?(\d{1,7}|no) "
    r"(?:failures?|failed|errors?)\b",
    re.IGNORECASE,
)
_TOOLCHAINS = (
    ("go", re.compile(r"\bgo (?:build|test|vet)\b", re.IGNORECASE)),
    ("node", re.compile(r"\b(?:npm|yarn|pnpm|bun|jest|vitest|mocha|tsc)\b", re.IGNORECASE)),
    ("python", re.compile(r"\b(?:pytest|unittest|tox)\b", re.IGNORECASE)),
    ("make", re.compile(r"\bmake (?:test|check|build|all)\b", re.IGNORECASE)),
)


@dataclass(frozen=True, slots=True)
class SpokenClaim:
    """One thing said as done. Shape: `kind` is `file`, `footnote`, `build` or `test`; `passed` and
    `failed` are claimed counts of tests; `toolchain` is set where the text names one; `folder` is
    where the document stands that cites the file, None where no document does."""

    kind: str
    text: str
    path: str = ""
    passed: int | None = None
    failed: int | None = None
    toolchain: str = ""
    folder: str | None = None

    @property
    def key(self) -> str:
        """Name the claim so that a later check of the same claim is recognised."""
        return f"claim:{self.kind}:{self.path or self.toolchain}"[:64]


def find_spoken_claims(text: str) -> list[SpokenClaim]:
    """List what a text says was done, each once, in its order. Shape: at most 100."""
    found: dict[tuple[object, ...], SpokenClaim] = {}
    for sentence in _SENTENCE.split(text[:MOST_CHARACTERS]):
        is_conditional = False
        failed = _failed(sentence[:CLAUSE_CHARACTERS])
        said = list(_ran(sentence[:CLAUSE_CHARACTERS]))
        for clause in _CLAUSE.split(sentence):
            is_conditional = is_conditional or _CONDITION.search(clause) is not None
            if is_conditional or not clause.strip():
                continue
            said += _claims_of(clause.strip()[:CLAUSE_CHARACTERS], failed)
        for claim in said[:MOST_CLAIMS]:
            found.setdefault((claim.key, claim.passed, claim.failed), claim)
        if len(found) >= MOST_CLAIMS:
            break
    return list(found.values())[:MOST_CLAIMS]


def _ran(sentence: str) -> Iterator[SpokenClaim]:
    """Read "12 tests, 0 failures": its comma ends no statement."""
    match = _RAN.search(sentence)
    if match is None or _CONDITION.search(sentence[: match.start()]):
        return
    if _is_done(sentence, match.start(), match.start()):
        failed = 0 if match[2].lower() == "no" else int(match[2])
        yield SpokenClaim("test", sentence.strip(), passed=max(0, int(match[1]) - failed),
                          failed=failed)  # fmt: skip


def _claims_of(clause: str, failed: int | None) -> Iterator[SpokenClaim]:
    yield from _files(clause)
    toolchain = next((name for name, pattern in _TOOLCHAINS if pattern.search(clause)), "")
    if any(_is_done(clause, one.start(), one.end()) for one in _BUILD.finditer(clause)):
        yield SpokenClaim("build", clause, toolchain=toolchain)
    passed, failed = _counts(clause, failed)
    if passed is not None or any(_is_all(clause, one) for one in _TEST.finditer(clause)):
        yield SpokenClaim("test", clause, passed=passed, failed=failed, toolchain=toolchain)


def _is_all(clause: str, test: re.Match[str]) -> bool:
    """Whether tests are said to pass, and not what is done after it or how many do."""
    more = test["more"] or test["rest"] or ""
    return _NOT_ALL.match(more) is None and _is_done(clause, test.start(), test.end())


def _files(clause: str) -> Iterator[SpokenClaim]:
    verb = _FILE_VERB.search(clause)
    if verb is None or not _is_done(clause, verb.start(), verb.end()):
        return
    for path in named_files(clause):
        yield SpokenClaim("file", clause, path=path)


def named_files(text: str) -> Iterator[str]:
    """Yield what reads as the path of a file of a known kind."""
    plain = list(_PATH.finditer(text))
    wide = [one for one in _WIDE_PATH.finditer(text) if _PATH.search(one[0]) is None]
    for match in sorted([*plain, *wide], key=re.Match.start):
        path = match[0].removeprefix("./")
        is_known = match[1].lower() in _KNOWN_ENDINGS and path.lower() not in _NO_FILES
        if is_known and "//" not in path:
            yield path


def _is_done(clause: str, start: int, end: int) -> bool:
    """Say whether nothing takes the words back: no intention before them, no denial in or near."""
    if _INTENDED.search(_HARMLESS.sub(" ", clause[:start])):
        return False
    begun = max((one.end() for one in _AND.finditer(clause, 0, start)), default=0)
    near = _HARMLESS.sub(" ", clause[begun:start])
    within = _HARMLESS.sub(" ", clause[start:end])
    return not any(_DENIED.search(one) or _INTENDED.search(one) for one in (near, within))


def _failed(sentence: str) -> int | None:
    return next((int(m[1]) for p in _FAILED if (m := p.search(sentence))), None)


def _counts(clause: str, failed: int | None) -> tuple[int | None, int | None]:
    """Read claimed counts: passed, failed."""
    of = _OF.search(clause)
    if of is not None and _is_done(clause, of.start(), of.end()):
        passed, total = int(of[1]), int(of[2])
        return passed, max(0, total - passed) if failed is None else failed
    for pattern in _PASSED:
        match = pattern.search(clause)
        if match is not None and _is_done(clause, match.start(), match.end()):
            return int(match[1]), failed
    return None, failed
