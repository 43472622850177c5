import type { Declared, Metric, Type } from "../metric.ts";
import type { Account } from "../state.ts";
import { windowAt, windowEnd, windowNumber, windowStart } from "../windows.ts";

/** No value that waits begins so. */
const MARK = "\n";

/**
 * The text of what the device remembers in a window: whether it is new, stayed or returned, and in
 * which window it was new. None if the clock shows a time before that.
 */
export function lookBack(account: Account, metric: Metric, window: string): string | undefined {
  const told = (metric.parameters.ages as number) + 1;
  const start = windowStart(window);
  const before = windowStart(windowAt(metric.window, start - 1));
  // The metric may have had windows of another kind when the device was new.
  const first = windowNumber(windowAt(metric.window, (account.first ??= start)));
  const age = windowNumber(window) - first;
  const gap = ![account.horizon, ...Object.keys(account.windows).map(windowEnd)].some(
    (end) => end > before && end <= start,
  );
  const item = (age && 1 + +gap) * (told + 1) + (age < told ? first % told : told);
  return age < 0 ? undefined : MARK + String(item);
}

/** Which fields of a compiled retention are those of its mechanism. */
export function checkRetention({ window, values, parameters }: Declared): Readonly<Record<string, boolean>> {
  const { ages, lifecycle, cohorts } = parameters as { ages: number; lifecycle: number[]; cohorts: number[] };
  const cells = [
    ...(lifecycle.length ? ["new", "stayed", "returned"] : []),
    ...(cohorts.length ? [...Array.from({ length: ages + 1 }, (_, at) => `cohort ${at}`), "older"] : []),
  ];
  return { window: window === parameters.window, values: String(values) === String(cells) };
}

/** Whether a device is new, stays or returns, and since when it is here. */
export const retention: Type = {
  // The client lets nothing else through than that the app was used.
  normalize: () => "",
  // What waits was recorded while the metric was of another type.
  item: (text) => (text[0] === MARK ? +text : undefined),
  suits: ({ looksBack }) => !!looksBack,
};
