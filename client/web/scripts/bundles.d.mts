import type { BuildOptions } from "esbuild";
export const BUNDLES: readonly { entry: string; name: string; full?: boolean; part?: boolean; globalName: string }[];
export function bundle(options: BuildOptions): Promise<string>;
export function constants(build?: { full?: boolean; development?: boolean }): Record<string, string>;
