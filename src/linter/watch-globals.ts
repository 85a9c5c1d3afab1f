import { basename, dirname, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { GlobalAccess } from './observation.ts'

/** The folder of the running code: `src` in a checkout, `dist` when installed. */
const PACKAGE_ROOT = fileURLToPath(new URL('..', import.meta.url))

/**
 * Reports when code in the folder of the worker file uses the global clock, randomness or fetch while `work` runs. The
 * caller is taken from the stack, so that libraries are not reported.
 */
export async function watchGlobals<T>(
  workerFile: string,
  onAccess: (access: GlobalAccess) => void,
  work: () => Promise<T>,
): Promise<T> {
  const original = { Date: globalThis.Date, random: Math.random, fetch: globalThis.fetch }
  const folder = dirname(workerFile) + sep
  const note = (kind: GlobalAccess['kind']): void => {
    const location = findCallerIn(folder)
    if (location !== null) onAccess({ kind, location })
  }
  globalThis.Date = new Proxy(original.Date, {
    construct: (target, args, newTarget) => {
      if (args.length === 0) note('clock')
      return Reflect.construct(target, args, newTarget) as object
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

/** The nearest caller outside this file, if it is in the folder and in neither this package nor an installed one. */
function findCallerIn(folder: string): string | null {
  const own = fileURLToPath(import.meta.url)
  const frames = (new Error('where').stack ?? '')
    .split('\n')
    .slice(1)
    .map((line) => /\(?((?:file:\/\/)?\/[^()]*?|[A-Za-z]:\\[^()]*?):(\d+):\d+\)?$/.exec(line.trim()))
  const callers = frames.map((match) => {
    if (match === null) return null
    const [, file = '', line = ''] = match
    return { file: file.startsWith('file://') ? fileURLToPath(file) : file, line }
  })
  const caller = callers.find((frame) => frame === null || frame.file !== own)
  if (
    caller == null ||
    !caller.file.startsWith(folder) ||
    caller.file.startsWith(PACKAGE_ROOT) ||
    caller.file.includes(`${sep}node_modules${sep}`)
  )
    return null
  return `${basename(caller.file)}:${caller.line}`
}
