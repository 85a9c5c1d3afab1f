import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { addToEnvFile } from '../../config/env-file.ts'

/** Adds secrets to `.env` of a project, and keeps the file out of version control. Returns the files that were written. */
export function writeEnvironment(folder: string, secrets: Readonly<Record<string, string>>): string[] {
  if (Object.keys(secrets).length === 0) return []
  const file = join(folder, '.env')
  const before = existsSync(file) ? readFileSync(file, 'utf8') : ''
  writeFileSync(file, addToEnvFile(before, secrets), { mode: 0o600 })
  const ignore = join(folder, '.gitignore')
  const ignored = existsSync(ignore) ? readFileSync(ignore, 'utf8') : ''
  if (ignored.split('\n').includes('.env')) return ['.env']
  writeFileSync(ignore, `${ignored}${ignored === '' || ignored.endsWith('\n') ? '' : '\n'}.env\n.tidemark/\n`)
  return ['.env', '.gitignore']
}

/** A text as the name of an environment variable; `fallback` begins a name that would begin with a digit. */
export function toVariable(text: string, fallback: string): string {
  const name = text
    .replace(/([a-z\d])([A-Z])/g, '$1_$2')
    .replace(/[^A-Za-z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '')
    .toUpperCase()
  return /^[A-Z]/.test(name) ? name : `${fallback}_${name}`.replace(/_$/, '')
}
