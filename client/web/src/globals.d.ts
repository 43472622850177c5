/**
 * Whether this is the development build, which checks the form of metrics.json and explains errors.
 * A constant, so that the other build leaves all of that out.
 */
declare const DEVELOPMENT: boolean;

/**
 * Whether this is the full bundle. The small one has neither texts nor numbers, and no mechanism
 * with memos or over any text: a registry that needs one is refused, and their code is left out.
 */
declare const FULL: boolean;

/**
 * Whether this bundle can tell segments. The others refuse a registry that has any,
 * and their code is left out of them.
 */
declare const JOINT: boolean;

/**
 * Whether this bundle sends in two hops (src/oblivious). The others send to the collector itself.
 */
declare const HOPS: boolean;
