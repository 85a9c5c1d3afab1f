import { createJiti, type Jiti, type TransformOptions } from 'jiti'

const jiti = createJiti(import.meta.url, { fsCache: false })
const transformed = new Map<string, string>()

export interface LoaderOptions {
  readonly moduleCache: boolean
  /** Changes the text of a file before it is transformed. */
  readonly patch?: (file: string, source: string) => string
}

/**
 * Loads TypeScript, patched or from a patched copy of the sources. It differs from the sources in one or two files, so
 * each text is transformed once per test file; the transformation takes most of the time of a load.
 */
export function createLoader(from: string, { moduleCache, patch }: LoaderOptions): Jiti {
  return createJiti(from, {
    fsCache: false,
    moduleCache,
    transform: (options) => {
      const source = patch?.(options.filename ?? '', options.source) ?? options.source
      return { code: transform({ ...options, source }) }
    },
  })
}

function transform(options: TransformOptions): string {
  const key = JSON.stringify({ ...options, filename: '' })
  let code = transformed.get(key)
  if (code === undefined) transformed.set(key, (code = jiti.transform(options)))
  return code
}
