import type { WindowKind } from "./metric.ts";

/** The label of the window of that kind which holds a POSIX time in seconds. */
export function windowAt(kind: WindowKind, seconds: number): string {
  const date = new Date(seconds * 1000);
  // The ISO year and week are those of the Thursday of the week.
  if (kind === "week") date.setUTCDate(date.getUTCDate() + 3 - weekday(date));
  const text = date.toISOString();
  if (kind !== "week") return text.slice(0, kind === "day" ? 10 : 7);
  const year = text.slice(0, 4);
  const weeks = Math.floor((+date - Date.parse(year)) / 6048e5);
  return `${year}-W${String(weeks + 101).slice(1)}`;
}

/** The POSIX time in seconds at which a window begins. Throws a RangeError if it is no label. */
export const windowStart = (label: string) => edges(label)[0];

/** The POSIX time in seconds at which a window has ended: the next one's start. */
export const windowEnd = (label: string) => edges(label)[1];

/** The windows of a kind, numbered: the number of the next one is higher by one. */
export const windowNumber = (label: string) => edges(label)[2];

/** How many days after Monday. */
function weekday(date: Date): number {
  return (date.getUTCDay() + 6) % 7;
}

function edges(label: string): [start: number, end: number, number: number] {
  // Python's dates end with the year 9999, in which some windows have no end.
  const [, year, week, day] = /^(?!0000|9999)(\d{4}-)(?:W(\d\d)|\d\d(-\d\d)?)$/.exec(label) ?? [];
  // Of a month the mean: no month begins half a month off the line through all of them.
  const days = week ? 7 : day ? 1 : 30.436875;
  // The fourth of January is always in the first week.
  const date = new Date(week ? `${year!}01-04` : year ? label : "");
  if (week) date.setUTCDate(7 * +week - 3 - weekday(date));
  const start = +date / 1000;
  // Only a label that exists is given back by its own first moment. Elsewhere labels are those of
  // `windowAt`, and a day that does not exist has ended: its metric records nothing.
  if (DEVELOPMENT && windowAt(week ? "week" : day ? "day" : "month", start) !== label) throw new RangeError();
  if (days > 7) date.setUTCMonth(date.getUTCMonth() + 1);
  else date.setUTCDate(date.getUTCDate() + days);
  return [start, +date / 1000, Math.round(start / days / 86400)];
}
