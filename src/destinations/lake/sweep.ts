import type { Storage, StoredFile } from './storage/storage.ts'

/** A sweep removes no more files than this; the next one continues. */
const FILES_MAX = 1_000

/** Removes files that nothing refers to, if they are older than `before`: a younger one may belong to a commit in progress. */
export async function removeUnused(
  storage: Storage,
  files: readonly StoredFile[],
  used: ReadonlySet<string>,
  before: number,
): Promise<void> {
  const unused = files.filter(({ path, changedAtMs }) => changedAtMs < before && !used.has(path))
  // Versions of metadata are removed in order: see `Versions.create`.
  const ordered = unused.map(({ path }) => path).toSorted((a, b) => versionOf(a) - versionOf(b))
  if (ordered.length > 0) await storage.remove(ordered.slice(0, FILES_MAX))
}

function versionOf(path: string): number {
  return Number(/\/v(\d+)\.[^/]*$/.exec(path)?.[1] ?? 0)
}
