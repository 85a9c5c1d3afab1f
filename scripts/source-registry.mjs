// Writes src/sources/registry.ts: every folder of src/sources that has a descriptor.
// `--check` writes nothing and fails if the file is out of date.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const folder = resolve(import.meta.dirname, '../src/sources')
const file = join(folder, 'registry.ts')
const names = readdirSync(folder)
  .filter((name) => existsSync(join(folder, name, 'descriptor.ts')))
  .sort()
const variable = (name) => name.replaceAll(/-(.)/g, (_, letter) => letter.toUpperCase())
const text = `// Generated from the folders by \`npm run sources\`. Do not edit.
${names.map((name) => `import ${variable(name)} from './${name}/descriptor.ts'\n`).join('')}
/** Every source, by name. */
export const SOURCES = {
${names.map((name) => `  ${variable(name) === name ? name : `'${name}': ${variable(name)}`},\n`).join('')}}

export type SourceName = keyof typeof SOURCES
`

if (!existsSync(file) || readFileSync(file, 'utf8') !== text) {
  if (process.argv.includes('--check')) {
    console.error('src/sources/registry.ts is out of date. Run `npm run sources`.')
    process.exit(1)
  }
  writeFileSync(file, text)
}
