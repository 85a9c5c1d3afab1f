import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { SIMULATORS_PACKAGE } from './import-simulators.ts'
import { templatesFolder } from './own-package.ts'

export interface ProjectFile {
  readonly path: string
  readonly text: string
}

export interface ProjectWriteResult {
  readonly written: readonly string[]
  /** Existing files that are kept: the project's own package.json. */
  readonly kept: readonly string[]
  /** Existing files that would be overwritten. If there are any, nothing is written. */
  readonly clashing: readonly string[]
}

/** npm treats these file names specially in a package, so the templates store them under other names. */
const TARGET_FILE_NAMES: Record<string, string> = {
  gitignore: '.gitignore',
  'env.example': '.env.example',
  env: '.env',
}

/** The files of each template, listed so that a store or key left in a template folder by a run is not copied. */
const TEMPLATE_FILES: Readonly<Record<string, readonly string[]>> = {
  worker: ['AGENTS.md', 'README.md', 'env.example', 'gitignore', 'package.json', 'tsconfig.json', 'worker.ts'],
  demo: ['env', 'worker.ts'],
  'sources/airbyte': ['manifest.yaml', 'worker.ts'],
  'sources/files': ['drop/orders.csv', 'worker.ts'],
  'sources/singer': ['tap.mjs', 'worker.ts'],
}

export function listTemplateFiles(template: string): readonly string[] {
  return TEMPLATE_FILES[template] ?? ['worker.ts']
}

/** Whether the worker of the template reads simulated data until its settings are set. */
export function usesSimulators(template: string): boolean {
  return readFileSync(join(templatesFolder(), template, 'worker.ts'), 'utf8').includes(`'${SIMULATORS_PACKAGE}'`)
}

/** Files of later templates override files of the same name. */
export function readTemplate(templates: readonly string[], values: Readonly<Record<string, string>>): ProjectFile[] {
  const files = new Map<string, ProjectFile>()
  for (const template of templates) {
    for (const name of listTemplateFiles(template)) {
      const path = TARGET_FILE_NAMES[name] ?? name
      const text = readFileSync(join(templatesFolder(), template, name), 'utf8')
      files.set(path, { path, text: text.replace(/\{\{(\w+)\}\}/g, (whole, key: string) => values[key] ?? whole) })
    }
  }
  return [...files.values()]
}

export function writeProject(folder: string, files: readonly ProjectFile[], force: boolean): ProjectWriteResult {
  const existing = files.map(({ path }) => path).filter((path) => existsSync(join(folder, path)))
  const isKept = (path: string): boolean => path === 'package.json' && !force
  const kept = existing.filter(isKept)
  const clashing = force ? [] : existing.filter((path) => !isKept(path))
  if (clashing.length > 0) return { written: [], kept, clashing }
  const written = files.filter(({ path }) => !existing.includes(path) || !isKept(path))
  for (const { path, text } of written) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  return { written: written.map(({ path }) => path), kept, clashing }
}
