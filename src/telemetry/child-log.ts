import type { Log, LogFields } from '../contract/index.ts'

/** Adds fixed fields to every log line. They take precedence, so that no line can override them. */
export function createChildLog(log: Log, context: LogFields): Log {
  const withContext =
    (level: keyof Log): Log['info'] =>
    (message, fields) =>
      log[level](message, fields === undefined ? context : { ...context, ...fields, ...context })
  return {
    debug: withContext('debug'),
    info: withContext('info'),
    warn: withContext('warn'),
    error: withContext('error'),
  }
}
