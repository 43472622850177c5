import { refuse } from "../mechanisms/base.ts";
import { first, plain } from "../mechanisms/prefix_tree.ts";
import type { Type } from "../metric.ts";

/** The most patterns of a metric, and the most characters of one. */
const MAX_DENIED = 100;
const MAX_PATTERN = 128;

/** A text with small letters for A to Z: other letters have small forms that change with Unicode. */
const small = (text: string): string => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

/** Whether a text fits a pattern, in which each * stands for any run of characters. */
function fits(text: string, pattern: string): boolean {
  const [start, ...middle] = small(pattern).split("*") as [string, ...string[]];
  const last = middle.pop();
  if (last === undefined) return text === start;
  const end = text.length - last.length;
  let begin = start.length;
  // The first place that fits leaves the most for what follows.
  return (
    begin <= end &&
    text.startsWith(start) &&
    text.endsWith(last) &&
    middle.every((piece) => {
      const found = text.indexOf(piece, begin);
      begin = found + piece.length;
      return found >= 0 && begin <= end;
    })
  );
}

/** Whether a text is one of the strings that devices never report. */
export const isDenied = (text: string, deny: readonly string[]): boolean =>
  deny.some((pattern) => fits(small(text), pattern));

/** Whether a registry may have these patterns. */
export const isDenyList = (deny: readonly unknown[]): boolean =>
  deny.length <= MAX_DENIED &&
  deny.every(
    (each) =>
      typeof each === "string" &&
      each === first(each, MAX_PATTERN) &&
      /[^*]/.test(each) &&
      !/[\0\p{Cs}]/u.test(each) &&
      each.normalize() === each,
  );

/**
 * Any text, of which the first bytes can be found. What is empty, denied or outside of the alphabet
 * becomes the empty text, which is reported like any other: silence would tell it from the others.
 */
export const discovery: Type = {
  made: ({ deny, parameters }, { head }) => {
    const normalize = (value: unknown): string => {
      if (typeof value !== "string") return refuse("takes text");
      const text = plain(value);
      // The message must not repeat the value.
      if (/\p{Cs}/u.test(text)) refuse("takes no half of a surrogate pair: clean the text first");
      // A character has a byte at least, so this holds all that can be found.
      const cut = first(text, 2 * (parameters.levels as number));
      return head!(cut).length && !isDenied(text, deny!) && !isDenied(cut, deny!) ? cut : "";
    };
    // What is denied now may have been recorded before it was.
    return { ...discovery, normalize, item: normalize };
  },
  normalize: () => "",
  item: (text) => text,
  suits: ({ head }) => !!head,
};
