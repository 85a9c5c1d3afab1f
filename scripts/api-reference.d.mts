/** An exported name with its declaration and TSDoc comment. */
export interface ApiExport {
  readonly name: string
  readonly kind: string
  readonly signature: string
  /** Empty without a comment. */
  readonly description: string
  readonly examples: readonly string[]
}

/** An entry point of package.json. */
export interface EntryPoint {
  readonly name: string
  readonly types: string
  readonly exports: readonly ApiExport[]
}

export const PAGES_FOLDER: string
export const SIMULATORS_FOLDER: string
export function readEntryPoints(packageFolder: string): EntryPoint[]
export function listUndocumented(entryPoints: readonly EntryPoint[]): string[]
export function renderPages(entryPoints: readonly EntryPoint[]): Map<string, string>
