import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { expect } from 'vitest'
import { ROOT } from './package.ts'
import type { Answer, Project } from './project.ts'

/** Documents that others parse are kept word for word; values that differ from run to run are replaced by their kind. */
export function expectGolden(name: string, project: Project, { code, stdout }: Answer): void {
  const lines = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.stringify(normal(JSON.parse(line), project), null, 2))
  const text = `exit ${code}\n${lines.join('\n')}\n`
  const file = join(import.meta.dirname, 'golden', `${name}.txt`)
  if (process.env['TIDEMARK_UPDATE'] === '1') {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  expect(existsSync(file), `${file} is not there; TIDEMARK_UPDATE=1 writes it`).toBe(true)
  expect(text).toBe(readFileSync(file, 'utf8'))
}

const VARYING: Record<string, string> = {
  lag_ms: '<ms>',
  waited_ms: '<ms>',
  by: '<holder>',
  held_by: '<holder>',
  actor: '<actor>',
}

function normal(value: unknown, project: Project, name = ''): unknown {
  if (Array.isArray(value)) return value.map((item) => normal(item, project))
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, normal(member, project, key)]))
  if (value !== null && Object.hasOwn(VARYING, name)) return VARYING[name]
  if (typeof value !== 'string') return value
  const version = (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }).version
  return (
    value
      .replaceAll(project.folder, '<folder>')
      .replaceAll(process.versions.node, '<node>')
      .replaceAll(hostname(), '<host>')
      .replace(/^file:.*tidemark-cli-[0-9a-f]{16}$/, 'file:<checkout>')
      .replaceAll(`^${version}`, '^<version>')
      // The second form is a tidemark that the engine derived from the start of a cycle.
      .replace(/\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.(?:\d{3}|999000)Z\b/g, '<time>')
      .replace(/^[\d,]+ MB free$/, '<space> MB free')
  )
}
