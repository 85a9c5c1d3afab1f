import { parseManifest, type Manifest } from './manifest.ts'
import { findProblems, findRootProblems } from './support.ts'

export interface Coverage {
  readonly manifests: number
  readonly loaded: number
  /** Manifests that name no class of Python. */
  readonly pure: number
  /** Pure manifests whose streams all run. */
  readonly supported: number
  readonly streams: number
  readonly streamsSupported: number
  /** Missing features with the number of manifests that use them, most first. */
  readonly missing: readonly (readonly [feature: string, manifests: number])[]
  readonly partial: readonly string[]
  readonly failures: readonly { readonly file: string; readonly reason: string }[]
}

/** Loads manifests and counts what runs. */
export function describeCoverage(files: readonly { readonly file: string; readonly text: string }[]): Coverage {
  const failures: { file: string; reason: string }[] = []
  const missing = new Map<string, number>()
  const partial: string[] = []
  const sums = { loaded: 0, pure: 0, supported: 0, streams: 0, streamsSupported: 0 }
  for (const { file, text } of files) {
    let manifest: Manifest
    try {
      manifest = parseManifest(text, file)
    } catch (error) {
      failures.push({ file, reason: (error as Error).message })
      continue
    }
    const streams = manifest.streams.map((stream) => findProblems(manifest, stream))
    const features = new Set([...streams.flat(), ...findRootProblems(manifest)].map(({ feature }) => feature))
    const isPure = !/^\s*-?\s*class_name:/m.test(text)
    sums.loaded++
    sums.streams += streams.length
    sums.streamsSupported += streams.filter((problems) => problems.length === 0).length
    if (isPure) sums.pure++
    if (isPure && features.size === 0) sums.supported++
    if (features.size > 0) partial.push(file)
    for (const feature of features) missing.set(feature, (missing.get(feature) ?? 0) + 1)
  }
  return {
    manifests: files.length,
    ...sums,
    missing: [...missing].toSorted((a, b) => b[1] - a[1]),
    partial,
    failures,
  }
}
