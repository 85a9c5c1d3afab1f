import type { Log, LogFields } from '../contract/index.ts'

/** Adds fixed fields to every log line. They take precedence, so that no line can override them. */
export function createChildLog(log: Log, about: LogFields): Log {
  const named = (level: keyof Log): Log['info'] => (message, fields) => log[level](message, fields === undefined ? about : { ...about, ...fields, ...about })
  return { debug: named('debug'), info: named('info'), warn: named('warn'), error: named('error') }
}
