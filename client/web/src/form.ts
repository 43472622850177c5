/** The form of metrics.json, which development builds check: keys, and the kinds of their values. */

type Table<T = unknown> = Readonly<Record<string, T>>;

// The kinds of values, as regular expressions of their JSON. Ranges are checked after that.
const TEXT = '".*\\S.*"';
const FIGURE = "[\\d.e+-]+";
const OBJECT = "{.+}";
const OR_NULL = "|null";
const OR_ABSENT = "|undefined";

export const TOP: Table<string> = {
  format: "1",
  app: '"[a-z][a-z0-9_-]{0,63}"',
  recipient: TEXT + OR_ABSENT,
  contact: TEXT + OR_ABSENT,
  lifetime_epsilon: FIGURE + OR_NULL,
  segments: OBJECT + OR_ABSENT,
  metrics: OBJECT,
};

/** What there is in addition where there are segments: in a metric, and in a segment. */
export const JOINT_METRIC: Table<string> = { segments: "\\[.*]", rows: "[1-9]\\d*" };
export const SEGMENT: Table<string> = { values: "\\[.+]", other: TEXT + OR_NULL };

export const REVEALS: Table<string> = {
  report: FIGURE,
  memo: FIGURE + OR_NULL,
  fresh: FIGURE + OR_NULL,
};

const STRING = {
  aggregate: '"(last|first|any)"',
  values: "null",
  other: "null",
  unit: "null",
};

/** Of a pair: it has no memos, and its metrics say how several records become one value. */
const PAIR = {
  ...STRING,
  aggregate: '"last"',
  answer: '"at_close"',
  longitudinal: '"fresh"',
  mechanism: '"subset_selection"',
  values: "\\[.+]",
  of: '\\["[^"]+","[^"]+"]',
  bins: "{.*}",
  forget: '"marginals"' + OR_NULL,
};

/** Of a discovery, which has no memos either. */
const DISCOVERY = {
  ...STRING,
  longitudinal: '"fresh"',
  mechanism: '"prefix_tree"',
  deny: "\\[.*]",
  minimum_share: FIGURE,
};

/** Of a retention: always with memos, and answered at once. */
const RETENTION = {
  ...STRING,
  aggregate: '"first"',
  answer: '"at_once"',
  longitudinal: '"memoize"',
  mechanism: '"memoized_retention"',
  values: "\\[.+]",
};

/** The keys whose values depend on the type. */
const TYPES: Table<Table<string>> = {
  boolean: { ...STRING, aggregate: '"(last|first|any|max)"', values: '\\["true","false"]' },
  category: { ...STRING, values: "\\[.+]", other: TEXT + OR_NULL },
  string: STRING,
  number: {
    ...STRING,
    aggregate: '"(last|first|any|max|min|sum|count|mean)"',
    unit: TEXT + OR_NULL,
  },
  pair: PAIR,
  discovery: DISCOVERY,
  retention: RETENTION,
};

export const METRIC = (type: unknown): Table<string> => ({
  type: `"(${Object.keys(TYPES).join("|")})"`,
  description: TEXT,
  expires: '"[\\d-]{10}"',
  window: '"(day|week|month)"',
  answer: '"at_(close|once)"',
  sample_rate: FIGURE,
  one_in: FIGURE + OR_NULL,
  longitudinal: '"(fresh|memoize)"',
  epsilon: FIGURE,
  lifetime_epsilon: FIGURE,
  memo_epsilon: FIGURE + OR_NULL,
  mechanism: TEXT,
  parameters: OBJECT,
  scheme: '"[\\da-f]{12}"',
  reveals: OBJECT,
  platform: '\\[("(web|python)"(,(?!"\\3)"(web|python)")?)?]',
  ...STRING,
  ...TYPES[type as string],
});

/** Whether a table has each of these keys, with a value of its kind, and no other key. */
export function form(fields: Table, kinds: Table<string>): Table {
  const known = new Map(Object.entries(kinds));
  const keys = [...known.keys(), ...Object.keys(fields)];
  return Object.fromEntries(
    keys.map((key) => [
      key,
      // A key that is not known has no kind, and no value is of that.
      RegExp(`^(${known.get(key) ?? "^"})$`, "s").test(JSON.stringify(fields[key])),
    ]),
  );
}
