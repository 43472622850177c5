import { exact } from "../exact.ts";
import { type Parameters, refuse } from "./base.ts";

/** The position of `high`, and of every number above it. */
export const TOP = 2 ** 30;

/** Bounds beyond these are refused: squares of such numbers are no doubles. */
const LARGEST = 1e100;
const SMALLEST = 1e-100;

/** A number on the edge of two steps of a logarithmic scale falls into the upper one everywhere. */
const NUDGE = 2 ** -12;

export interface NumberRange {
  /** The position of a number: -1 below `low`, 2**30 from `high` on, in equal steps between. */
  readonly position: (value: number) => number;
  /** How many whole numbers it holds; 0 if its numbers are not whole. */
  readonly wholes: bigint;
}

/** The cell of a position, of `cells` in equal parts of the scale; whole numbers are never cut. */
export function cellOf({ wholes }: NumberRange, cells: number, position: number): number {
  const inner = BigInt(cells - 2);
  const parts = wholes || inner;
  return countUpTo(position, cells - 1, (place) => {
    const cut = parts > inner ? (BigInt(place) * parts) / inner : BigInt(place);
    return Math.min(TOP, Number((cut << 30n) / parts));
  });
}

/** How many of `count` levels, which do not fall, are at most `position`. */
export function countUpTo(
  position: number,
  count: number,
  level: (place: number) => number,
): number {
  let [low, high] = [0, count];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (level(middle) > position) high = middle;
    else low = middle + 1;
  }
  return low;
}

function bound(name: string, text: unknown): number {
  const known =
    typeof text === "string" && text.length <= 32 && /^-?\d+(\.\d+)?(e[+-]?\d+)?$/.test(text);
  if (DEVELOPMENT && (!known || Math.abs(Number(text)) > LARGEST))
    refuse(`${name} must be the text of a number up to 1e100`);
  return Number(text);
}

/** The range out of a mechanism's parameters, and the parameters beside it. */
export function numberRange({
  low,
  high,
  scale,
  integer,
  ...rest
}: Parameters): [NumberRange, Parameters] {
  const whole = Number(integer === 1);
  const logarithmic = scale === "log";
  const start = bound("low", low);
  const last = bound("high", high);
  // The range decides what a position means, not what a report of it reveals.
  if (DEVELOPMENT) {
    const largest = Math.max(Math.abs(start), Math.abs(last));
    const least = Math.max(SMALLEST, whole ? 0 : largest * 2 ** -40);
    if (!whole && integer !== 0) refuse("integer must be 0 or 1");
    if (!logarithmic && scale !== "linear") refuse("scale must be linear or log");
    if (whole && !(Number.isSafeInteger(start) && Number.isSafeInteger(last) && !logarithmic))
      refuse("integer is 1: low and high must be whole numbers below 2**53, and scale linear");
    if (last - start < least)
      refuse("low must be below high, by at least 1e-100 and 1e-12 of the larger");
    if (logarithmic && start < SMALLEST)
      refuse("low must be at least 1e-100 on a logarithmic scale");
  }

  const end = last + whole;
  const width = Math.log(end / start);
  if (!(end > start) || (logarithmic && !(width > 0))) refuse("low must be below high");
  const from = exact(start);
  const span = exact(end) - from;
  const range: NumberRange = {
    wholes: whole ? span >> 1074n : 0n,
    position(value) {
      if (value < start) return -1;
      if (value >= end) return TOP;
      return logarithmic
        ? Math.min(Math.floor((Math.log(value / start) / width) * TOP + NUDGE), TOP - 1)
        : Number(((exact(value) - from) << 30n) / span);
    },
  };
  return [range, rest];
}
