// Reports in words, and a page for the owner of the device: what was sent, what it reveals, what
// waits, and what the ledger still allows. It is a bundle of its own, loaded when it is asked for.
import type { Client, SentReport } from "../client.ts";
import { exact } from "../exact.ts";
import { spent } from "../ledger.ts";
import type { Columns } from "../mechanisms/base.ts";
import type { Declared } from "../metric.ts";
import type { Account } from "../state.ts";
import { windowNumber } from "../windows.ts";

/** What the words need of a compiled registry. */
export interface DescribedRegistry {
  readonly lifetime_epsilon: number | null;
  readonly recipient?: string;
  readonly contact?: string;
  readonly metrics: Readonly<Record<string, DescribedMetric>>;
  readonly segments?: Readonly<Record<string, { readonly values: readonly string[] }>>;
}

type DescribedMetric = Pick<
  Declared,
  "description" | "values" | "mechanism" | "parameters" | "scheme" | "segments" | "rows" | "lifetime_epsilon" | "reveals"
>;

/** Values are named one by one for lists of at most so many. */
const LISTED_VALUES = 20;
/** The page shows the newest reports. */
const LISTED_REPORTS = 200;

const STATUSES: Readonly<Record<SentReport["status"], string>> = {
  queued: "waits to be sent",
  sent: "sent",
  unanswered: "sent, not acknowledged",
  rejected: "refused by the collector",
  dropped: "dropped without being sent",
};

/** What a report said and what it reveals, as a sentence without its full stop. */
export function describe(report: SentReport, metrics: DescribedRegistry): string {
  const metric = ownEntry(metrics.metrics, report.metric);
  if (metric?.scheme !== report.scheme)
    return "a randomized report under parameters that this app no longer uses, so it cannot be put into words";
  const { reveals, values } = metric;
  const columns = positions(report.columns);
  let said: string;
  if (metric.mechanism === "subset_selection" && values && values.length <= LISTED_VALUES) {
    const named = columns.map((each) => `“${values[each]}”`);
    const share = Number(metric.parameters.threshold) / 2 ** 53;
    // All sets that hold the true value are equally likely, and so are all others.
    const high = percent(share / choose(values.length - 1, columns.length - 1));
    const low = percent((1 - share) / choose(values.length - 1, columns.length));
    said =
      named.length === 1
        ? `your device said ${named[0]}; it would say so ${high} of the time if that were true and ${low} if it were not`
        : `your device named ${listed(named)}; it would name exactly these ${high} of the time if one of them were true and ${low} if none were`;
  } else {
    if (metric.mechanism === "memoized_retention") {
      const cells = retentionCells(metric, report);
      said = `your device named ${listed(columns.map((each) => `“${cells[each]!}”`))}`;
    } else
      said =
        typeof report.columns === "number"
          ? `your device sent the number ${report.columns}`
          : `your device marked ${columns.length} numbers`;
    said += `; whatever is true, it would send exactly this at most ${odds(reveals.report)} times as often for one value as for any other`;
  }
  if (reveals.memo !== null)
    said += `; it keeps one permanent noisy copy of each value and adds fresh noise for each report, so that all reports of a value together, however many, are at most ${odds(reveals.memo)} times as likely for it as for another; reports may show when the value changes`;
  if (metric.segments?.length) {
    // The last segment counts fastest.
    let place = Math.floor(report.row / metric.rows!);
    const told: string[] = [];
    for (const name of [...metric.segments].reverse()) {
      const { values } = metrics.segments![name]!;
      told.unshift(`${name} = “${values[place % values.length]!}”`);
      place = Math.floor(place / values.length);
    }
    said += `; without noise your device also told ${listed(told)}`;
  }
  return said;
}

/** What the cells of a retention's row stand for in the window of a report. */
function retentionCells({ parameters }: DescribedMetric, { row, window }: SentReport): string[] {
  const { window: kind, ages, lifecycle } = parameters as { window: string; ages: number; lifecycle: unknown[] };
  if (!row && lifecycle.length)
    return ["used for the first time", `used in the ${kind} before too`, "back after a gap"];
  const count = ages + 1;
  return [
    ...[...Array(count).keys()].map((cell) => `first used ${(windowNumber(window) - cell) % count} ${kind}(s) before`),
    "first used earlier",
  ];
}

/** What the page shows beside the reports. */
export interface OwnerPageOptions {
  /** What the app is called. */
  readonly app?: string;
}

/**
 * A page of HTML for the owner of the device. It has neither script nor style, so that any
 * Content Security Policy allows it; an app adds its own style sheet and buttons.
 */
export async function ownerPage(
  client: Pick<Client, "accounts" | "sent" | "status">,
  metrics: DescribedRegistry,
  { app = "this app" }: OwnerPageOptions = {},
): Promise<string> {
  const reports = await client.sent();
  const accounts = await client.accounts();
  const name = escape(app);
  const values = accounts
    .flatMap(({ windows, held }) => Object.values({ ...windows, ...held }))
    .filter((each) => typeof each === "object" && each.length).length;
  const queued = reports.filter(({ status }) => status === "queued");
  const others = reports.filter(({ status }) => status !== "queued");
  const list = (shown: readonly SentReport[]): string => {
    const items = shown.slice(0, LISTED_REPORTS).map((each) => {
      const words = describe(each, metrics);
      const about = ownEntry(metrics.metrics, each.metric)?.description ?? each.metric;
      const status = STATUSES[each.status] + (each.reason ? `: ${each.reason}` : "");
      return `<li><h3>${escape(about)}</h3><p>${escape(words[0]!.toUpperCase() + words.slice(1))}.</p><p>${escape(`${each.metric}, ${each.window}; ${status}`)}</p></li>`;
    });
    const more = shown.length - items.length;
    return `<ul>${items.join("")}</ul>${more ? `<p>And ${more} older ones.</p>` : ""}`;
  };
  const state =
    client.status === "on"
      ? `Reporting is on: ${name} reports what is listed here, and nothing else.`
      : `Reporting is off: ${name} reports nothing.`;
  const waits = values
    ? `<p>${values} true value${values === 1 ? " waits" : "s wait"} in this browser until the end of its day, week or month. Then noise is added to it, the value is deleted, and only the noisy report can be sent.</p>`
    : "";
  /** What stands where nothing is listed. */
  const none = (text: string) => `<p>${client.status === "failed" ? "This cannot be read." : text}</p>`;
  const rows = accounts
    .filter(({ ledger }) => ledger.length)
    .map((account) => {
      const metric = ownEntry(metrics.metrics, account.name);
      const cells = [reportsOf(account), metric ? left(account, metric, accounts, metrics) : "no longer reported", certainty(spent(account))];
      return `<tr><th scope="row">${escape(metric?.description ?? account.name)}</th>${cells.map((each) => `<td>${each}</td>`).join("")}</tr>`;
    });
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>What ${name} has reported</title>
</head>
<body>
<main>
<h1>What ${name} has reported</h1>
<p>${state}</p>
<p>Your device adds random noise to each report before it is sent, so that no report proves anything about you.</p>
<h2>Who receives it</h2>
${metrics.recipient ? `<p>The reports go to ${escape(metrics.recipient)}.</p>` : ""}${metrics.contact ? `<p>Questions about your data: ${escape(metrics.contact)}</p>` : ""}
<p>You can switch reporting off at any time, in the settings of ${name}. Values and reports that wait are deleted then.</p>
<h2>Waiting</h2>
${waits}${queued.length ? `<p>These reports are ready and have not been acknowledged yet:</p>${list(queued)}` : waits ? "" : none("Nothing waits to be sent.")}
<h2>Reported</h2>
${others.length ? list(others) : none("Nothing has been reported yet.")}
<h2>Revealed in all</h2>
${
  rows.length
    ? `<table>
<thead><tr><th scope="col">Metric</th><th scope="col">Reports made</th><th scope="col">Reports left</th><th scope="col">A 50/50 guess is right at most, of 100 times</th></tr></thead>
<tbody>${rows.join("")}</tbody>
</table>
<p>Before any report, a 50/50 guess between two values is right 50 times of 100. The last column holds even for someone who has kept every report of this browser and knows everything else. It holds for one life of the browser's storage: whoever deletes it begins anew.</p>`
    : none("Nothing has been reported yet.")
}
</main>
</body>
</html>
`;
}

const reportsOf = ({ ledger }: Account): number => ledger.reduce((sum, [, , reports]) => sum + reports, 0);

/** How many more reports the ledger allows if no other metric is reported. */
function left(
  account: Account,
  { reveals, lifetime_epsilon }: DescribedMetric,
  accounts: readonly Account[],
  metrics: DescribedRegistry,
): number | string {
  const rests: bigint[] = [];
  if (reveals.memo === null) rests.push(exact(lifetime_epsilon) - spent(account));
  else if (!account.key) return 0;
  if (metrics.lifetime_epsilon !== null)
    rests.push(accounts.reduce((rest, each) => rest - spent(each), exact(metrics.lifetime_epsilon)));
  if (!rests.length) return "until the metric expires";
  const rest = rests.reduce((one, other) => (other < one ? other : one));
  return rest < 0n ? 0 : Number(rest / exact(reveals.fresh ?? reveals.report));
}

/** How often a 50/50 guess is right at most after reports of this sum of epsilons, rounded up; with more
 * decimals where it would read 100. */
function certainty(sum: bigint): string {
  const epsilon = Number(sum >> 1022n) / 2 ** 52;
  const chance = 100 / (1 + Math.exp(-epsilon));
  for (const digits of [1, 2, 3]) {
    const rounded = Math.ceil(chance * 10 ** digits - 1e-9) / 10 ** digits;
    if (rounded < 100) return rounded.toFixed(digits);
  }
  return "100";
}

/** The columns of a report, from 0. */
function positions(columns: Columns): readonly number[] {
  if (typeof columns === "number") return [columns];
  if (typeof columns !== "string") return columns;
  const bytes = atob(columns.replace(/-/g, "+").replace(/_/g, "/"));
  return [...Array(8 * bytes.length).keys()].filter((each) => (bytes.charCodeAt(each >> 3) >> (each & 7)) & 1);
}

/** How many ways there are to choose `count` of `size`. */
function choose(size: number, count: number): number {
  let ways = 1;
  for (let each = 1; each <= count; each++) ways = (ways * (size - count + each)) / each;
  return ways;
}

/** Three digits, and five where what is not certain would read 100. */
const percent = (share: number): string => `${Number((100 * share).toPrecision(share > 0.9995 ? 5 : 3))} %`;

const odds = (epsilon: number): string => String(Number(Math.exp(epsilon).toPrecision(3)));

function listed(parts: readonly string[]): string {
  return parts.length > 1 ? `${parts.slice(0, -1).join(", ")} and ${parts[parts.length - 1]!}` : (parts[0] ?? "none");
}

const escape = (text: string): string => text.replace(/[&<>"']/g, (each) => `&#${each.charCodeAt(0)};`);

/** An entry of a table by its own keys only. */
const ownEntry = <T>(entries: Readonly<Record<string, T>>, key: string): T | undefined =>
  Object.prototype.hasOwnProperty.call(entries, key) ? entries[key] : undefined;
