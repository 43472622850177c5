// The page of the browser tests. Its query says what it records and at which time it believes to be.
"use strict";
const query = new URLSearchParams(location.search);
const shift = Number(query.get("shift"));
const records = JSON.parse(query.get("records") ?? "[]");

for (const event of ["error", "unhandledrejection", "securitypolicyviolation"])
  addEventListener(event, (found) => {
    const what = found.message ?? found.reason ?? `${found.violatedDirective} ${found.blockedURI}`;
    console.error(`${event}: ${what}`);
  });

globalThis.client = new deniable.Client(metrics, {
  endpoint: query.get("endpoint"),
  consent: query.get("consent") !== "no",
  spread: Number(query.get("spread") ?? 3),
  clock: () => Date.now() / 1000 + shift,
});
const record = () => {
  for (const [name, value] of records) client.record(name, value);
};
record();
for (const later of JSON.parse(query.get("later") ?? "[]")) setTimeout(record, later);
