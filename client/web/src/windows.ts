import type { WindowKind } from "./metric.ts";

const DAY = 86400;

/** The label of the window of that kind which holds a POSIX time in seconds. */
export function windowAt(kind: WindowKind, seconds: number): string {
  const date = new Date(seconds * 1000);
  if (kind === "week") {
    // The ISO year and week are those of the Thursday of the week.
    date.setUTCDate(date.getUTCDate() + 4 - (date.getUTCDay() || 7));
    const week = Math.floor((date.getTime() / 1000 - windowStart(`${iso(date, 4)}-01-01`)) / DAY / 7) + 1;
    return `${iso(date, 4)}-W${String(week).padStart(2, "0")}`;
  }
  return iso(date, kind === "day" ? 10 : 7);
}

/** The POSIX time in seconds at which a window begins. Throws a RangeError if it is no label. */
export function windowStart(label: string): number {
  return edges(label)[0];
}

/** The POSIX time in seconds at which a window has ended: the next one's start. */
export function windowEnd(label: string): number {
  return edges(label)[1];
}

function iso(date: Date, length: number): string {
  const text = date.toISOString();
  if (text.length > 24) throw new RangeError("the clock is outside the years 0 to 9999");
  return text.slice(0, length);
}

function edges(label: string): [number, number] {
  const [, year, week, month, day] = /^(\d{4})-(?:W(\d\d)|(\d\d)(?:-(\d\d))?)$/.exec(label) ?? [];
  const kind = week ? "week" : day ? "day" : "month";
  const date = new Date(0);
  if (week) {
    // The fourth of January is always in the first week.
    date.setUTCFullYear(Number(year), 0, 4 + 7 * (Number(week) - 1));
    date.setUTCDate(date.getUTCDate() + 1 - (date.getUTCDay() || 7));
  } else date.setUTCFullYear(Number(year), Number(month) - 1, Number(day ?? 1));
  const start = date.getTime() / 1000;
  // Only a label that exists is given back by its own first moment.
  if (!year || (day ? iso(date, 10) : windowAt(kind, start)) !== label)
    throw new RangeError("this is not the label of a window");
  if (kind === "month") date.setUTCMonth(date.getUTCMonth() + 1);
  else date.setUTCDate(date.getUTCDate() + (week ? 7 : 1));
  return [start, date.getTime() / 1000];
}
