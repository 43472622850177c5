"""A privacy notice and a question for consent, as `deniable lint --notice` writes them.

They say what follows from the registry and from what the SDK and the collector do. Why an app asks,
on which legal basis and with which processors, its operator adds:
docs/how-to/data-protection.md explains each part.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from deniable.device.owner import certainty
from deniable.device.owner_texts import OwnerLanguage
from deniable.protocol import windows
from deniable.protocol.errors import Problem, RegistryError
from deniable.protocol.keep import Keep
from deniable.protocol.keys import PEOPLE_KEYS
from deniable.protocol.mechanisms import MAX_MEMO_EPSILON, Memoizing
from deniable.protocol.metric import Metric
from deniable.protocol.registry import Registry

_NEEDED = {
    "recipient": 'a notice names who receives the reports: write recipient = "..." at the top',
    "contact": 'a notice says where people can ask: write contact = "..." at the top',
}


def notice(registry: Registry, language: OwnerLanguage) -> str:
    """The notice and the question for consent, as Markdown.

    Raises:
        RegistryError: the registry does not say who receives the reports, or where to ask.
    """
    missing = [key for key in PEOPLE_KEYS if getattr(registry, key) is None]
    if missing:
        problems = [Problem(None, key, _NEEDED[key]) for key in missing]
        raise RegistryError(problems, registry.source)
    texts = _TEXTS[language]
    asked = [metric for metric in registry if metric.name not in registry.unasked]
    people = {
        "app": _plain(registry.app),
        "recipient": _plain(registry.recipient or ""),
        "contact": _plain(registry.contact or ""),
        "segments": texts.between.join(_segments(asked)),
        "kept": _kept(asked, texts),
    }
    parts = [
        texts.title,
        texts.who,
        texts.asked,
        "TABLE",
        *_remarks(registry, asked, texts),
        texts.leaves,
        *([texts.clear] if any(metric.segments for metric in asked) else []),
        texts.reveals,
        texts.kept,
        texts.rights if all(metric.platform == ("web",) for metric in asked) else texts.commands,
        texts.law,
        texts.consent,
        "QUESTIONS",
        texts.choice,
    ]
    blocks = {
        "TABLE": "\n".join((*texts.table, *(_row(each, registry, texts) for each in asked))),
        "QUESTIONS": "\n".join(f"- {_plain(metric.description)}" for metric in asked),
    }
    return "\n\n".join(blocks.get(part) or part.format(**people) for part in parts) + "\n"


def _row(metric: Metric, registry: Registry, texts: _Texts) -> str:
    often = texts.often[metric.window]
    if metric.rate < 1:
        often += texts.sampled[metric.window].format(percent=f"{100 * metric.rate:.3g}")
    mechanism = metric.scheme.mechanism
    if isinstance(mechanism, Memoizing):
        all_of_them = texts.one_value.format(bound=_bound(mechanism.lifetime_epsilon, texts))
    else:
        limits = (metric.lifetime_epsilon, registry.lifetime_epsilon or math.inf)
        epsilon = Fraction(mechanism.epsilon)
        all_of_them = _bound(Fraction(min(limits)) // epsilon * epsilon, texts)
    name = f"{_plain(metric.description)} (`{metric.name}`)"
    return f"| {name} | {often} | {_bound(mechanism.epsilon, texts)} | {all_of_them} |"


def _bound(epsilon: Fraction | float, texts: _Texts) -> str:
    """How often an even guess is right at most afterwards, with the epsilon that says the same."""
    if epsilon > MAX_MEMO_EPSILON:
        return texts.useless
    digits = math.ceil(Fraction(epsilon) * 100 - Fraction(1, 10**9)) / 100
    return texts.bound.format(guess=certainty(Fraction(epsilon)), epsilon=f"{digits:g}")


def _remarks(registry: Registry, asked: Iterable[Metric], texts: _Texts) -> Iterator[str]:
    for name, pair in registry.unasked.items():
        yield texts.joined.format(name=name, pair=pair.name)
    if registry.lifetime_epsilon is not None:
        yield texts.cap.format(bound=_bound(registry.lifetime_epsilon, texts))
    if soon := [f"`{metric.name}`" for metric in asked if metric.answer == "at_once"]:
        yield texts.soon.format(names=texts.between.join(soon))
    if any("web" in metric.platform for metric in asked):
        yield texts.web


def _segments(asked: Iterable[Metric]) -> list[str]:
    """The segments that are told in clear, each with its values."""
    found = {each.name: each.values for metric in asked for each in metric.segments}
    return [f"{name} ({', '.join(map(_plain, values))})" for name, values in found.items()]


def _kept(asked: Iterable[Metric], texts: _Texts) -> str:
    """How long sums stay, as far as the registry says it."""
    groups: dict[Keep, list[str]] = {}
    for metric in asked:
        groups.setdefault(metric.keep, []).append(f"`{metric.name}`")
    told = []
    for keep, names in groups.items():
        spans = [
            texts.for_ever.format(calendar=texts.calendars[calendar])
            if days is None
            else texts.for_days.format(calendar=texts.calendars[calendar], days=days)
            for calendar, days in keep
        ]
        span = texts.between.join(spans) or texts.unlimited
        told.append(
            span
            if len(groups) == 1
            else texts.of.format(names=texts.between.join(names), span=span)
        )
    return "; ".join(told)


def _plain(text: str) -> str:
    """A text of the registry as Markdown shows it, on one line."""
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", " ".join(text.split()))


@dataclass(frozen=True, kw_only=True)
class _Texts:
    """The sentences in one language. Names in braces are filled in."""

    title: str
    who: str
    asked: str
    table: tuple[str, str]
    joined: str
    cap: str
    soon: str
    web: str
    leaves: str
    clear: str
    reveals: str
    kept: str
    rights: str
    commands: str
    law: str
    consent: str
    choice: str
    often: Mapping[windows.Kind, str]
    sampled: Mapping[windows.Kind, str]
    bound: str
    one_value: str
    useless: str
    calendars: Mapping[str, str]
    for_days: str
    for_ever: str
    unlimited: str
    of: str
    between: str


_ENGLISH = _Texts(
    title="# Privacy notice: telemetry of {app}",
    who=(
        "**Who receives it.** {recipient} receives the reports and is responsible for them. "
        "Questions and requests: {contact}"
    ),
    asked=(
        "**What is asked.** Only if you agree, and only what is listed here. The columns on the "
        "right say how often of 100 times somebody is right at most who has seen the reports and "
        "guesses between two answers; without any report it is 50."
    ),
    table=(
        "| what is asked | how often | after one report | after all reports |",
        "| --- | --- | --- | --- |",
    ),
    joined="`{name}` is not reported by itself, only together with another in `{pair}`.",
    cap="All reports of all metrics together: {bound}. Then the device stops for good.",
    soon=(
        "Reports of {names} are sent within seconds, so whoever watches the network sees roughly "
        "when you use the app."
    ),
    web=(
        "In a browser the limits for several reports hold until the browser's storage is deleted; "
        "after that they begin anew."
    ),
    leaves=(
        "**What leaves the device.** Your true answer stays on the device. The device draws a "
        "report from it that is wrong with a known probability, and sends that: the metric, its "
        "day, week or month, and the noisy answer. A report holds no name and no number of a "
        "person or a device. Like any server, the one that receives it sees the network address "
        "that it comes from; deniable's collector does not store the address."
    ),
    clear="**Without noise** some reports also tell: {segments}.",
    reveals=(
        "**What that means.** The limits in the table hold against everybody, also against us, "
        "and whatever else they know about you. Whoever receives reports sees that your device "
        "takes part. We do not claim that the reports are anonymous."
    ),
    kept=(
        "**How long.** An answer waits on the device until its day, week or month is over, and is "
        "then deleted. The server adds the report to sums over all devices; a copy in its journal "
        "is overwritten after about a minute. The sums are kept: {kept}."
    ),
    rights=(
        "**Your choice.** You can withdraw your consent at any time in the settings. What waits is "
        "then deleted. The app can show you each report of your browser, and what it reveals."
    ),
    commands=(
        "**Your choice.** You can withdraw your consent at any time in the settings of {app}, or "
        "with the command `deniable sent --switch-off`. What waits is then deleted. "
        "`deniable sent` shows each report of your device and what it reveals, and "
        "`deniable sent --erase` deletes them from the device."
    ),
    law=(
        "A report that has been added to a sum cannot be found in it again, because it carries "
        "nothing that belongs to you. The law may give you the rights of access, erasure, "
        "restriction and objection: write to {contact}. You can also complain to a data "
        "protection authority."
    ),
    consent=(
        "# Question for consent\n\nMay {app} send noisy reports to {recipient}? They are about:"
    ),
    choice=(
        "Your device adds noise before it sends a report, so that no report proves an answer. You "
        "can change your mind at any time in the settings. More is in the privacy notice.\n\n"
        "[ Yes ]  [ No ]"
    ),
    often={
        "day": "once a day at most",
        "week": "once a week at most",
        "month": "once a month at most",
    },
    sampled={
        "day": ", on a random {percent}% of the days",
        "week": ", in a random {percent}% of the weeks",
        "month": ", in a random {percent}% of the months",
    },
    bound="{guess} (epsilon {epsilon})",
    one_value="{bound} about one value; when it changes is not hidden",
    useless="no useful limit",
    calendars={"day": "days", "week": "weeks", "month": "months", "quarter": "quarters"},
    for_days="those of {calendar} for {days} days",
    for_ever="those of {calendar} without a limit",
    unlimited="as long as the server is set to keep them, which has no limit by default",
    of="{names}: {span}",
    between=", ",
)

_CHINESE = _Texts(
    title="# 隐私声明：{app} 的遥测",
    who="**谁接收上报。** {recipient} 接收上报并对其负责。问题和请求请联系：{contact}",
    asked=(
        "**询问什么。** 仅在您同意之后，且只询问这里列出的内容。右边两列给出："
        "看过上报的人在两个回答之间"
        "猜测时，100 次中至多猜对多少次；没有任何上报时是 50 次。"
    ),
    table=("| 询问的内容 | 频率 | 一份上报之后 | 全部上报之后 |", "| --- | --- | --- | --- |"),
    joined="`{name}` 不单独上报，只在 `{pair}` 中与另一个指标一起上报。",
    cap="所有指标的全部上报合计：{bound}。此后设备永久停止上报。",
    soon="{names} 的上报在数秒之内发送，因此网络监听者能看出您大致何时使用该应用。",
    web="在浏览器中，对多份上报的限制在浏览器的存储被删除之前有效；此后重新开始计算。",
    leaves=(
        "**什么离开设备。** 您的真实回答留在设备上。"
        "设备由它抽取一份以已知概率出错的上报并只发送这份上报："
        "指标、所属的日、周或月，以及带噪声的回答。上报中没有姓名，也没有个人或设备的编号。"
        "与任何服务器一样，"
        "接收方能看到请求来自的网络地址；deniable 的收集器不保存该地址。"
    ),
    clear="部分上报还**不加噪声地**告知：{segments}。",
    reveals=(
        "**这意味着什么。** 表中的限制对任何人都成立，包括我们，也不论他们对您还知道什么。"
        "接收上报的人能看到"
        "您的设备参与其中。我们不声称这些上报是匿名的。"
    ),
    kept=(
        "**保存多久。** 回答在设备上等待，直到所属的日、周或月结束，随后删除。"
        "服务器把上报加入所有设备的总和；"
        "其日志中的副本约一分钟后被覆盖。总和的保存期限：{kept}。"
    ),
    rights=(
        "**您的选择。** 您可以随时在设置中撤回同意，等待中的内容随即删除。"
        "该应用可以向您显示此浏览器的每份上报及其泄露的内容。"
    ),
    commands=(
        "**您的选择。** 您可以随时在 {app} 的设置中撤回同意，或运行命令 `deniable sent --switch-of"
        "f`，"
        "等待中的内容随即删除。`deniable sent` 显示此设备的每份上报及其泄露的内容，"
        "`deniable sent --erase` 将其从设备上删除。"
    ),
    law=(
        "已加入总和的上报无法再从中找出，因为它不含任何属于您的标识。法律可能赋予您查阅、删除、"
        "限制处理和"
        "反对的权利：请联系 {contact}。您也可以向数据保护机构投诉。"
    ),
    consent="# 征求同意\n\n是否允许 {app} 向 {recipient} 发送带噪声的上报？内容涉及：",
    choice=(
        "您的设备在发送上报之前加入噪声，因此任何一份上报都不能证明您的回答。"
        "您可以随时在设置中改变主意。"
        "详情见隐私声明。\n\n[ 同意 ]  [ 不同意 ]"
    ),
    often={"day": "每天至多一次", "week": "每周至多一次", "month": "每月至多一次"},
    sampled={
        "day": "，随机 {percent}% 的日子",
        "week": "，随机 {percent}% 的周",
        "month": "，随机 {percent}% 的月",
    },
    bound="{guess}（epsilon {epsilon}）",
    one_value="就一个值而言 {bound}；值何时改变不受隐藏",
    useless="没有有用的限制",
    calendars={"day": "日", "week": "周", "month": "月", "quarter": "季度"},
    for_days="按{calendar}的总和保存 {days} 天",
    for_ever="按{calendar}的总和不限期",
    unlimited="按服务器的设置，默认不限期",
    of="{names}：{span}",
    between="、",
)

_TEXTS: Mapping[OwnerLanguage, _Texts] = {"en": _ENGLISH, "zh-Hans": _CHINESE}
