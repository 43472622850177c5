// RAPPOR, which `auto` never takes. It has what it shares with memos.ts once more.
import { basicRappor, oneTimeRappor, rappor } from "../mechanisms/rappor.ts";
import type { Parts } from "../parts.ts";

export { receive } from "../shared.ts";

export default {
  mechanisms: {
    basic_rappor: basicRappor,
    rappor,
    one_time_rappor: oneTimeRappor,
  },
} satisfies Partial<Parts>;
