import { basename, dirname, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { GlobalAccess } from './observation.ts'

/** The folder of the code that runs: `src` here, `dist` when installed. */
const PACKAGE_ROOT = fileURLToPath(new URL('..', import.meta.url))

/**
 * Notes when code beside the worker file reaches for the clock, for chance or for the network of the process while `work`
 * runs. Who called is read from the stack, so that libraries may do as they please.
 */
export async function watchGlobals<T>(workerFile: string, onStray: (stray: GlobalAccess) => void, work: () => Promise<T>): Promise<T> {
  const original = { Date: globalThis.Date, random: Math.random, fetch: globalThis.fetch }
  const folder = dirname(workerFile) + sep
  const note = (what: GlobalAccess['kind']): void => {
    const where = findCallerIn(folder)
    if (where !== null) onStray({ kind: what, location: where })
  }
  globalThis.Date = new Proxy(original.Date, {
    construct: (target, args, asked) => {
      if (args.length === 0) note('clock')
      return Reflect.construct(target, args, asked) as object
    },
    get: (target, name) => {
      if (name !== 'now') return Reflect.get(target, name) as unknown
      return () => {
        note('clock')
        return target.now()
      }
    },
  })
  Math.random = () => {
    note('chance')
    return original.random()
  }
  globalThis.fetch = (...given) => {
    note('fetch')
    return original.fetch(...given)
  }
  try {
    return await work()
  } finally {
    globalThis.Date = original.Date
    Math.random = original.random
    globalThis.fetch = original.fetch
  }
}

/** The nearest caller outside this file, if it lies in the folder and is neither this package nor an installed one. */
function findCallerIn(folder: string): string | null {
  const own = fileURLToPath(import.meta.url)
  const frames = (new Error('where').stack ?? '').split('\n').slice(1).map((line) => /\(?((?:file:\/\/)?\/[^()]*?|[A-Za-z]:\\[^()]*?):(\d+):\d+\)?$/.exec(line.trim()))
  const caller = frames.map((match) => (match === null ? null : { file: match[1]!.startsWith('file://') ? fileURLToPath(match[1]!) : match[1]!, line: match[2]! })).find((frame) => frame === null || frame.file !== own)
  if (caller == null || !caller.file.startsWith(folder) || caller.file.startsWith(PACKAGE_ROOT) || caller.file.includes(`${sep}node_modules${sep}`)) return null
  return `${basename(caller.file)}:${caller.line}`
}
