/**
 * Whether this is the development build, which checks the form of metrics.json and explains errors.
 * A constant, so that the other build leaves all of that out.
 */
declare const DEVELOPMENT: boolean;

/**
 * Whether this is the full entry. The closed one has neither texts nor numbers, no mechanism with
 * memos or over any text, and no parts: a registry that needs more is refused, and the code for it
 * is left out.
 */
declare const FULL: boolean;
