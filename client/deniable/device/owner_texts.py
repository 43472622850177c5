"""The texts for the owner of a device, in each language: the sentences of the page, and the
sentences that say what a report reveals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

OwnerLanguage: TypeAlias = Literal["en", "zh-Hans"]
"""A language of the page, as BCP 47 has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerTexts:
    """The sentences in one language. Names in braces are filled in."""

    language: OwnerLanguage
    this_app: str
    """The name of the app if it does not give one."""

    # The page.
    title: str
    noise: str
    received: str
    recipient: str
    contact: str
    switch: str
    """How to switch off; `app` is the app."""
    waiting: str
    reported: str
    ledger: str
    on: str
    off: str
    switch_off: str
    erase: str
    one_waits: str
    many_wait: str
    queued: str
    nothing_waits: str
    nothing_sent: str
    erased: str
    """Shown after an erasure; `day` is its date."""
    more: str
    statuses: Mapping[str, str]
    refused: str
    """A status with the reason for it."""
    about: str
    """A report's metric, window and status."""
    words: str
    """The text about a report, as a sentence."""
    how_often: str
    if_true: str
    same: str
    not_known: str
    not_asked: str
    until_expiry: str
    no_ledger: str
    ledger_heads: tuple[str, str, str, str]
    ledger_note: str

    # What a report reveals.
    unknown_scheme: str
    number: str
    marked: str
    odds: str
    memory: str
    segments: str
    """What was told in clear beside the noisy report."""
    named_one: str
    named_several: str
    number_in: str
    """The numbers that a report favours, as the next five say it."""
    exactly: str
    up_to: str
    from_on: str
    between: str
    any_number: str
    lifecycle: tuple[str, str, str]
    """That the app is used for the first time, was in the window before, or not."""
    since: str
    """That it was first used in a window; the next one: before."""
    before: str
    and_next: str
    """Between named values, except before the last."""
    and_last: str


ENGLISH = OwnerTexts(
    language="en",
    this_app="this app",
    title="What {app} has reported",
    noise=(
        "Your device adds random noise to every report before it is sent, so that a single "
        "report\nproves nothing about you."
    ),
    received="Who receives it",
    recipient="The reports go to {recipient}.",
    contact="Questions about your data: {contact}",
    switch=(
        "You can switch reporting off at any time: in {app}, with the command "
        "<code>deniable sent --switch-off</code>, or with DENIABLE_DISABLED=1 in the environment. "
        "Values and reports that wait are deleted then."
    ),
    waiting="Waiting",
    reported="Reported",
    ledger="What it reveals in total",
    on="Reporting is on: {app} reports what is listed here, and nothing else.",
    off="Reporting is off: {app} reports nothing.",
    switch_off="Switch reporting off",
    erase="Erase what waits here",
    one_waits=(
        "1 true value waits on this device until its day, week or month has ended. Then noise is "
        "added to it, the value is deleted, and only the noisy report can be sent."
    ),
    many_wait=(
        "{count} true values wait on this device until their day, week or month has ended. Then "
        "noise is added to each, the value is deleted, and only the noisy report can be sent."
    ),
    queued="These reports are ready and have not been sent yet:",
    nothing_waits="Nothing waits to be sent.",
    nothing_sent="This device has not reported anything yet.",
    erased="What was reported before was erased on {day}; what it revealed is still in the ledger.",
    more="And {count} older ones.",
    statuses={
        "queued": "waits to be sent",
        "sent": "sent",
        "unanswered": "sent, not acknowledged",
        "rejected": "refused by the collector",
        "dropped": "dropped without being sent",
    },
    refused="{status}: {reason}",
    about="{metric}, {window}; {status}",
    words="{words}.",
    how_often="How often your device would have sent exactly this",
    if_true="If this were true",
    same="It would send the same",
    not_known="not known without its metrics.toml",
    not_asked="no longer reported",
    until_expiry="until the metric expires",
    no_ledger="Nothing has been reported yet.",
    ledger_heads=(
        "Metric",
        "Reports sent",
        "Reports left",
        "A 50/50 guess is now right at most, of 100 times",
    ),
    ledger_note=(
        "Before any report, a 50/50 guess between two values is right 50 times of 100. The last "
        "column holds even for someone who has kept every report of this device and knows "
        "everything else. When no reports are left, the device stops for good."
    ),
    unknown_scheme=(
        "a randomized report under parameters that this app no longer uses, "
        "so it cannot be put into words"
    ),
    number="your device sent the number {said:,} of {width:,}",
    marked="your device marked {said:,} of {width:,} numbers",
    odds=(
        "{said}; whatever is true, it would send exactly this at most {odds:.3g} times as often "
        "for one value as for any other"
    ),
    memory=(
        "{said}; it keeps one permanent noisy copy of each value and adds fresh noise for each "
        "report, so that all reports of a value together, however many, are at most {odds:.3g} "
        "times as likely for it as for another; reports may show when the value changes"
    ),
    segments="{said}; without noise your device also told {segments}",
    named_one=(
        "your device said “{value}”; it would say so {high} of the time if that were true and "
        "{low} if it were not"
    ),
    named_several=(
        "your device named {values}; it would name exactly these {high} of the time if one of "
        "them were true and {low} if none were"
    ),
    number_in="your device's report is likeliest for {ranges}",
    exactly="the number {number}",
    up_to="numbers up to {high}",
    from_on="numbers from {low} on",
    between="numbers from {low} to {high}",
    any_number="any number",
    lifecycle=("used for the first time", "used in the last window too", "used again after a gap"),
    since="first used in {window}",
    before="first used before {window}",
    and_next=", ",
    and_last=" and ",
)

_CHINESE = OwnerTexts(
    language="zh-Hans",
    this_app="本应用",
    title="{app}上报了什么",
    noise="您的设备在发送之前给每份上报加入随机噪声，因此任何一份上报都不能证明您的任何情况。",
    received="谁接收上报",
    recipient="上报发送给{recipient}。",
    contact="关于您的数据的问题：{contact}",
    switch=(
        "您可以随时关闭上报：在{app}中关闭，运行命令 <code>deniable sent --switch-off</code>，"
        "或设置环境变量 DENIABLE_DISABLED=1。届时等待中的值和上报会被删除。"
    ),
    waiting="等待中",
    reported="已上报",
    ledger="合计泄露",
    on="上报已开启：{app}只上报这里列出的内容，别无其他。",
    off="上报已关闭：{app}不上报任何内容。",
    switch_off="关闭上报",
    erase="删除在此等待的内容",
    one_waits=(
        "有 1 个真实值在此设备上等待，直到它所属的日、周或月结束。届时会给它加入噪声，删除该值，"
        "只有带噪声的上报才能发送。"
    ),
    many_wait=(
        "有 {count} 个真实值在此设备上等待，直到它们所属的日、周或月结束。届时会给每个值加入噪声，"
        "删除该值，只有带噪声的上报才能发送。"
    ),
    queued="以下上报已就绪，尚未发送：",
    nothing_waits="没有等待发送的内容。",
    nothing_sent="此设备还没有上报过任何内容。",
    erased="此前的上报记录已于 {day} 删除；其泄露量仍记在账本中。",
    more="另有 {count} 份较早的上报。",
    statuses={
        "queued": "等待发送",
        "sent": "已发送",
        "unanswered": "已发送，未收到确认",
        "rejected": "被收集器拒绝",
        "dropped": "未发送即丢弃",
    },
    refused="{status}：{reason}",
    about="{metric}，{window}；{status}",
    words="{words}。",
    how_often="您的设备有多大可能恰好发送这份上报",
    if_true="如果这是真的",
    same="它会发送同样的上报",
    not_known="没有 metrics.toml，无法得知",
    not_asked="不再上报",
    until_expiry="直到指标到期",
    no_ledger="还没有上报过任何内容。",
    ledger_heads=(
        "指标",
        "已发送上报",
        "剩余上报",
        "现在五五开的猜测在 100 次中至多猜对的次数",
    ),
    ledger_note=(
        "在任何上报之前，在两个值之间五五开的猜测在 100 次中猜对 50 次。最后一列对保存了此设备的"
        "每份上报并且知道其他一切的人也成立。没有剩余上报时，设备永久停止。"
    ),
    unknown_scheme="一份随机化的上报，其参数本应用已不再使用，因此无法用文字说明",
    number="您的设备在 {width:,} 个数中发送了第 {said:,} 个",
    marked="您的设备在 {width:,} 个数中标记了 {said:,} 个",
    odds=(
        "{said}；无论真实情况如何，它恰好这样发送的可能性，对一个值至多是对其他值的 {odds:.3g} 倍"
    ),
    memory=(
        "{said}；它为每个值保留一份永久的带噪声副本，每次上报再加入新的噪声，因此同一个值的所有上报"
        "合在一起，无论多少份，对它的可能性至多是对另一个值的 {odds:.3g} 倍；当值改变时，上报"
        "可能会显示出这一点"
    ),
    segments="{said}；您的设备还不加噪声地告知了{segments}",
    named_one="您的设备说“{value}”；如果这是真的，它有 {high} 的可能这样说，否则有 {low}",
    named_several=(
        "您的设备说出了{values}；如果其中之一为真，它有 {high} 的可能恰好说出这些，否则有 {low}"
    ),
    number_in="您的设备的上报对{ranges}最有可能",
    exactly="数 {number}",
    up_to="不大于 {high} 的数",
    from_on="不小于 {low} 的数",
    between="从 {low} 到 {high} 的数",
    any_number="任何数",
    lifecycle=("首次使用", "上一窗口也使用过", "隔了一段时间再次使用"),
    since="首次使用于 {window}",
    before="首次使用早于 {window}",
    and_next="、",
    and_last="和",
)

OWNER_TEXTS: Mapping[OwnerLanguage, OwnerTexts] = {"en": ENGLISH, "zh-Hans": _CHINESE}
"""The sentences by language."""
