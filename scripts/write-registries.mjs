// Writes src/sources/registry.ts and src/destinations/registry.ts: every folder that has a descriptor.
// `--check` writes nothing and fails if a file is out of date.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

for (const kind of ['source', 'destination']) {
  const path = `src/${kind}s/registry.ts`
  const file = resolve(import.meta.dirname, '..', path)
  const text = renderRegistry(kind, namesIn(resolve(file, '..')))
  if (existsSync(file) && readFileSync(file, 'utf8') === text) continue
  if (process.argv.includes('--check')) {
    console.error(`${path} is out of date. Run \`npm run sources\`.`)
    process.exit(1)
  }
  writeFileSync(file, text)
}

function namesIn(folder) {
  return readdirSync(folder)
    .filter((name) => existsSync(join(folder, name, 'descriptor.ts')))
    .sort()
}

function renderRegistry(kind, names) {
  const title = kind[0].toUpperCase() + kind.slice(1)
  const variable = (name) => name.replaceAll(/-(.)/g, (_, letter) => letter.toUpperCase())
  const member = (name) => (variable(name) === name ? name : `'${name}': ${variable(name)}`)
  return `// Generated from the folders by \`npm run sources\`. Do not edit.
${names.map((name) => `import ${variable(name)} from './${name}/descriptor.ts'\n`).join('')}
/** Every ${kind}, by name. */
export const ${kind.toUpperCase()}S = {
${names.map((name) => `  ${member(name)},\n`).join('')}}

export type ${title}Name = keyof typeof ${kind.toUpperCase()}S
`
}
