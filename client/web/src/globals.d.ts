/**
 * Whether this is the development build, which checks the form of metrics.json and explains errors.
 * A constant, so that the other build leaves all of that out.
 */
declare const DEVELOPMENT: boolean;
