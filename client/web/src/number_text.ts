/** The number that a text stands for; undefined if it is no such text. */
export function readNumber(text: string): number | undefined {
  const number = Number(text);
  return Number.isFinite(number) && String(number) === text ? number : undefined;
}

/** A number as Python writes it, which takes exponents earlier and with two digits. */
export function numberText(number: number): string {
  const [digits, exponent] = number.toExponential().split("e") as [string, string];
  const power = Math.abs(+exponent);
  return Number.isSafeInteger(number) || (+exponent >= -4 && +exponent < 16)
    ? String(number)
    : `${digits}e${exponent[0]!}${power < 10 ? "0" : ""}${power}`;
}
