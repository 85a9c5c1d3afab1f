import type { Log, LogFields } from '../contract/index.ts'

/** The same log, whose every line says what it is about. No line can say otherwise, or push it out with fields of its own. */
export function createChildLog(log: Log, about: LogFields): Log {
  const named = (level: keyof Log): Log['info'] => (message, fields) => log[level](message, fields === undefined ? about : { ...about, ...fields, ...about })
  return { debug: named('debug'), info: named('info'), warn: named('warn'), error: named('error') }
}
