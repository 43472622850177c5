import type { BuildOptions } from "esbuild";
export function bundle(options: BuildOptions): Promise<string>;
export function constants(build: { full?: boolean; joint?: boolean; hops?: boolean; development?: boolean }): Record<string, string>;
export function plugins(build: { hops?: boolean }): NonNullable<BuildOptions["plugins"]>;
