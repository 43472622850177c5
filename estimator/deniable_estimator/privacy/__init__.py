"""The guarantee as numbers: what the reports of a device can reveal, computed from its mechanism.

A report with odds factor e**epsilon multiplies anybody's odds between two values by at most that
factor, whatever else they know. So a 50/50 guess becomes right with probability at most
odds / (odds + 1). The epsilons of all reports of a device add up, over windows and metrics, and
so do those of g devices with the same value, a household (Dwork and Roth, "The Algorithmic
Foundations of Differential Privacy", 2014, sections 2.3 and 3.5). For memos see
`deniable.protocol.mechanisms.Memoizing`.

Every figure is rounded up.
"""
