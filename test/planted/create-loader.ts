import { createJiti, type Jiti, type TransformOptions } from 'jiti'

const jiti = createJiti(import.meta.url, { fsCache: false })
const transformed = new Map<string, string>()

/**
 * Loads TypeScript from a copy of the sources. A patched copy differs from the others in one or two files, so each text
 * is transformed once per test file; the transformation takes most of the time of a load.
 */
export function createLoader(from: string, { moduleCache }: { readonly moduleCache: boolean }): Jiti {
  return createJiti(from, { fsCache: false, moduleCache, transform: (options) => ({ code: transform(options) }) })
}

function transform(options: TransformOptions): string {
  const key = JSON.stringify({ ...options, filename: '' })
  let code = transformed.get(key)
  if (code === undefined) transformed.set(key, (code = jiti.transform(options)))
  return code
}
