import type { WindowKind } from "./metric.ts";

const DAY = 86400;

/** The UTC date of a day, counted from 1970. */
function iso(day: number): string {
  return new Date(day * DAY * 1000).toISOString();
}

/** How many days after the last Monday. */
function weekday(day: number): number {
  return (((day + 3) % 7) + 7) % 7;
}

/** The first day of a year, month or day, counted from 1970. */
function dayOf(date: string): number {
  return Date.parse(date) / DAY / 1000;
}

/** The label of the window of that kind which holds a POSIX time in seconds. */
export function windowAt(kind: WindowKind, seconds: number): string {
  const day = Math.floor(seconds / DAY);
  if (kind !== "week") return iso(day).slice(0, kind === "day" ? 10 : 7);
  // The ISO year and week are those of the Thursday of the week.
  const thursday = day - weekday(day) + 3;
  const year = iso(thursday).slice(0, 4);
  const week = Math.floor((thursday - dayOf(year)) / 7) + 1;
  return `${year}-W${String(week).padStart(2, "0")}`;
}

/** The POSIX time in seconds at which a window begins. Throws a RangeError if it is no label. */
export function windowStart(label: string): number {
  // Python's dates end with the year 9999, in which some windows have no end.
  const [, year, week, day] = /^(?!0000|9999)(\d{4})-(?:W(\d\d)|\d\d(-\d\d)?)$/.exec(label) ?? [];
  // The fourth of January is always in the first week.
  const fourth = dayOf(`${year}-01-04`);
  const first = week ? fourth - weekday(fourth) + 7 * (Number(week) - 1) : dayOf(label);
  // Only a label that exists is given back by its own first moment.
  if (!year || windowAt(week ? "week" : day ? "day" : "month", first * DAY) !== label)
    throw new RangeError("no window");
  return first * DAY;
}

/** The POSIX time in seconds at which a window has ended: the next one's start. */
export function windowEnd(label: string): number {
  const start = windowStart(label);
  return label.length === 7
    ? windowStart(windowAt("month", start + 31 * DAY))
    : start + (label.includes("W") ? 7 : 1) * DAY;
}
