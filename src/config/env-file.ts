import { parseEnv } from 'node:util'
import { SyncError } from '../contract/index.ts'

/** The text of an `.env` file with more variables. Throws if a name has another value, or if a value cannot be written. */
export function addToEnvFile(text: string, values: Readonly<Record<string, string>>): string {
  const present = parseEnv(text)
  let result = text
  for (const [name, value] of Object.entries(values)) {
    if (present[name] === value) continue
    if (present[name] !== undefined && present[name] !== '')
      throw new SyncError(
        'ARGUMENT_INVALID',
        `.env already has another value for ${name}. Change it there, or name another variable.`,
      )
    result = `${result === '' || result.endsWith('\n') ? result : `${result}\n`}${formatLine(name, value)}\n`
    if (parseEnv(result)[name] !== value)
      throw new SyncError(
        'ARGUMENT_INVALID',
        `The value of ${name} cannot be written to .env. Set it in the environment.`,
      )
  }
  return result
}

/** Quotes have no escapes in `.env`, so the first kind that the value does not contain is used. */
function formatLine(name: string, value: string): string {
  if (/^[\w./:@%+=?&,-]*$/.test(value)) return `${name}=${value}`
  const quote = ["'", '"', '`'].find((mark) => !value.includes(mark)) ?? ''
  return `${name}=${quote}${value}${quote}`
}
